/// A document that a store answers with.
package protocol S3Document: Sendable {
  /// The name of its outermost element.
  static var element: String { get }
  init(_ element: S3XMLElement) throws(S3XMLError)
}

extension S3Document {
  /// The document in an answer. It may be an error even with status 200: a store sends the status before it has done the
  /// work.
  package static func read(_ body: [UInt8], status: Int) throws(S3XMLError) -> Result<Self, S3Error> {
    let root = try S3XMLParser.read(body)
    if root.name == S3Error.element { return .failure(S3Error(root, status: status)) }
    guard stem(root.name) == stem(element) else { throw S3XMLError("expected \(element), not \(root.name.prefix(64))") }
    return .success(try Self(root))
  }
  /// Some stores end the name of an answer in another way, such as `InitiateMultipartUpload` and `ListPartsResponse`.
  private static func stem(_ name: String) -> Substring {
    for end in ["Result", "Response"] where name.hasSuffix(end) { return name.dropLast(end.count) }
    return name[...]
  }
}
