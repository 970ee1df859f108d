/// A request as it reached a ``StoreServer``, before its body.
package struct StoreRequest: Sendable {
  package var method: String
  /// Path and query, as they were sent.
  package var target: String
  /// Decoded, with its slash.
  package var path: String
  /// Decoded; a name without a value has "".
  package var query: [String: String]
  /// Names in lower case, in the order sent.
  package var headers: [(name: String, value: String)]
  package var operation = StoreOperation.unknown
  /// Counts the requests for this operation in the whole store, from 1.
  package var ordinal = 0
  /// Counts the requests for this operation and target, from 1: the attempts for one part.
  package var attempt = 0
  /// Identifies the connection that it came on.
  package var connection = 0

  init(_ head: OriginRequest) {
    method = head.method
    target = head.target
    headers = head.headers
    path = StoreText.percentDecoded(head.path)
    query = StoreText.query(head.target.drop { $0 != "?" }.dropFirst())
    operation = StoreOperation(self)
  }

  package subscript(name: String) -> String? {
    headers.first { $0.name == name }?.value
  }

  /// The path without its first slash: the key in ``StoreServer/objects``.
  package var key: String { String(path.dropFirst()) }
  package var bucket: String { String(key.prefix { $0 != "/" }) }
  /// S3's key, without the bucket.
  package var objectKey: String { String(key.dropFirst(bucket.count + 1)) }
  package var uploadID: String? { query["uploadId"] }
  package var partNumber: Int? { query["partNumber"].flatMap { Int($0) } }

  /// The length of the body that it announces; nil if it is chunked.
  var contentLength: Int64? {
    self["transfer-encoding"] != nil ? nil : self["content-length"].flatMap { Int64($0) } ?? 0
  }

  package var expectsContinue: Bool { self["expect"]?.lowercased() == "100-continue" }

  /// The fields whose names begin with `prefix`, without it.
  func fields(_ prefix: String) -> [String: String] {
    var fields: [String: String] = [:]
    for (name, value) in headers where name.hasPrefix(prefix) { fields[String(name.dropFirst(prefix.count))] = value }
    return fields
  }

  /// What an object keeps of the request's headers.
  var kept: [String: String] {
    var kept: [String: String] = [:]
    let names = [
      "content-type", "content-disposition", "content-encoding", "content-language", "cache-control",
      "x-amz-storage-class",
    ]
    for name in names { kept[name] = self[name] }
    return kept
  }

  /// The checksums that it carries.
  var checksums: [StoreChecksum: String] {
    var found: [StoreChecksum: String] = [:]
    for kind in StoreChecksum.allCases { found[kind] = self[kind.header] }
    return found
  }
}
