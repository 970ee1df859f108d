import ReelhaulCodec
import TaskCore

/// The `parameters` of an upload, and of a copy that leads to the same places:
/// `{"method", "partSize", "contentType", "metadata", "storageClass", "checksum", "creationWithUpload", "toCredential"}`. All
/// of them may be absent.
package struct UploadParameters: Hashable, Sendable {
  /// The request that carries the bytes.
  package enum Method: String, CaseIterable, Sendable {
    case put = "PUT"
    case post = "POST"
  }

  /// What the server is given to compare the bytes with.
  package enum Checksum: String, CaseIterable, Sendable {
    case crc32c, sha256, none
  }

  package static let names = [
    "method", "partSize", "contentType", "metadata", "storageClass", "checksum", "creationWithUpload", "toCredential",
  ]
  /// The least part of a multipart upload, except the last, and the largest, in bytes. Stores take up to 5 GiB, but a part
  /// is in memory while it is sent.
  package static let partSizes: ClosedRange<Int64> = 5 << 20...1 << 30
  /// The same for servers of tus, which have no least part: a request for every few bytes would never end.
  package static let tusPartSizes: ClosedRange<Int64> = 64 << 10...1 << 30
  /// Earlier versions took parts as large as stores do.
  private static let mostStored: Int64 = 5 << 30
  /// The most bytes of all names and values of ``metadata`` together.
  package static let metadataLimit = 2 << 10
  /// How many of these an upload to S3 needs for what it says of itself.
  private static let ownMetadata = 128

  /// Nil for PUT.
  package var method: Method?
  /// Bytes; nil if the upload chooses.
  package var partSize: Int64?
  package var contentType: String?
  package var metadata: [String: String] = [:]
  package var storageClass: String?
  /// Nil if the upload chooses.
  package var checksum: Checksum?
  /// Whether a file that one request carries is sent with the creation of its upload, where a server of tus offers that. If
  /// the answer is lost, the server may have the file a second time.
  package var creationWithUpload = false
  /// The name of the credential for the destination of a copy; nil if that of the task is for both ends.
  package var toCredential: String?

  package init() {}

  /// The parameters of an upload or a copy, checked, also against its destination. Errors name the field, such as
  /// `parameters.partSize`.
  package init(_ spec: TaskSpec) throws(InvalidTask) {
    self.init()
    do throws(DecodingFailure) { try read(spec, refusingUnknownNames: true) } catch { throw InvalidTask(error) }
    try check(for: spec.destination.flatMap { try? ResourceURL($0) })
    try checkCredential(of: spec)
    guard !spec.headers.contains(where: { $0.name.lowercased() == "content-type" }) else {
      throw InvalidTask("headers", "Content-Type is the parameter contentType of an upload")
    }
    try checkObjectFields(of: spec)
  }

  /// The header fields of a task that its object at an S3 store is made with. Those of a copy from another server are for
  /// its source.
  package static func objectFields(of spec: TaskSpec) -> [HeaderField] {
    guard case .storage? = try? ResourceURL(spec.source) else { return [] }
    return spec.headers.filter { isObjectField($0.name.lowercased()) }
  }

  /// What only the request tells that makes an object. Others would be needed with each part, or change what is compared.
  private static func isObjectField(_ name: String) -> Bool {
    [
      "cache-control", "content-disposition", "content-language", "expires", "x-amz-acl", "x-amz-tagging",
      "x-amz-website-redirect-location", "x-amz-server-side-encryption", "x-amz-server-side-encryption-context",
      "x-amz-server-side-encryption-aws-kms-key-id", "x-amz-server-side-encryption-bucket-key-enabled",
    ].contains(name) || ["x-amz-grant-", "x-amz-object-lock-"].contains { name.hasPrefix($0) }
  }

  /// Those of a task that was taken: they were checked then, maybe by a version with other limits. A clean-up needs few of
  /// them, so it can do without those that it does not know.
  package init(stored spec: TaskSpec, refusingUnknownNames: Bool) throws(TaskFailure) {
    self.init()
    do throws(DecodingFailure) {
      try read(spec, refusingUnknownNames: refusingUnknownNames)
    } catch {
      throw TaskFailure(error)
    }
    let sizes = Self.partSizes(at: spec.destination.flatMap { try? ResourceURL($0) })
    partSize = partSize.map { min(max($0, sizes.lowerBound), sizes.upperBound) }
  }

  private mutating func read(_ spec: TaskSpec, refusingUnknownNames: Bool) throws(DecodingFailure) {
    guard let json = spec.parameters else { return }
    self = try JSONReader.read(json, refusingUnknownNames: refusingUnknownNames) { reader throws(DecodingFailure) in
      var parameters = UploadParameters()
      try parameters.read(from: &reader)
      return parameters
    }
  }

  private static func partSizes(at destination: ResourceURL?) -> ClosedRange<Int64> {
    if case .tus = destination { tusPartSizes } else { partSizes }
  }

  private mutating func read(from reader: inout JSONReader) throws(DecodingFailure) {
    try reader.object(known: Self.names) { reader, name throws(DecodingFailure) in
      switch name {
      case "method": method = try reader.choice()
      case "partSize": partSize = try reader.integer(1...Self.mostStored)
      case "contentType": contentType = try reader.string()
      case "metadata": metadata = try reader.strings()
      case "storageClass": storageClass = try reader.string()
      case "checksum": checksum = try reader.choice()
      case "creationWithUpload": creationWithUpload = try reader.bool()
      case "toCredential": toCredential = try reader.string()
      default: try reader.skip()
      }
    }
  }

  /// The JSON of what is given; nil if nothing is.
  package var json: [UInt8]? {
    guard self != UploadParameters() else { return nil }
    return JSONWriter.write { json in
      json.object { json in
        json.member("method", method?.rawValue)
        json.member("partSize", partSize)
        json.member("contentType", contentType)
        if !metadata.isEmpty { json.member("metadata", metadata) }
        json.member("storageClass", storageClass)
        json.member("checksum", checksum?.rawValue)
        if creationWithUpload { json.member("creationWithUpload", true) }
        json.member("toCredential", toCredential)
      }
    }
  }
}

// MARK: Checks

extension UploadParameters {
  /// `destination` is nil where the text is no URL, which is an error of another field.
  private func check(for destination: ResourceURL?) throws(InvalidTask) {
    if let destination { try checkPlaces(destination) }
    try checkPartSize(destination)
    try checkChecksum(destination)
    if let contentType, contentType.isEmpty || !HeaderField(name: "content-type", value: contentType).isSendable {
      throw InvalidTask("parameters.contentType", "is empty, too long or has control characters")
    }
    if let storageClass, !TaskSpec.isName(storageClass, limit: 64) {
      throw InvalidTask("parameters.storageClass", "must be 1 to 64 letters, digits, \".\", \"_\" or \"-\"")
    }
    try checkMetadata(destination)
  }

  /// A parameter that its destination ignores would be a promise that nobody keeps.
  private func checkPlaces(_ destination: ResourceURL) throws(InvalidTask) {
    let place =
      switch destination {
      case .web: "http(s)://"
      case .s3: "s3://"
      case .tus: "tus+http(s)://"
      case .storage: "storage://"
      }
    let given: [(name: String, isGiven: Bool, places: [String])] = [
      ("method", method != nil, ["http(s)://"]), ("partSize", partSize != nil, ["s3://", "tus+http(s)://"]),
      ("contentType", contentType != nil, ["http(s)://", "s3://", "tus+http(s)://"]),
      ("metadata", !metadata.isEmpty, ["s3://", "tus+http(s)://"]), ("storageClass", storageClass != nil, ["s3://"]),
      ("checksum", checksum != nil, ["http(s)://", "s3://", "tus+http(s)://"]),
      ("creationWithUpload", creationWithUpload, ["tus+http(s)://"]),
      ("toCredential", toCredential != nil, ["http(s)://", "s3://", "tus+http(s)://"]),
    ]
    for parameter in given where parameter.isGiven && !parameter.places.contains(place) {
      throw InvalidTask(
        "parameters.\(parameter.name)",
        "only a destination \(parameter.places.joined(separator: " or ")) can have it, not \(place)")
    }
  }

  private func checkObjectFields(of spec: TaskSpec) throws(InvalidTask) {
    guard case .s3? = spec.destination.flatMap({ try? ResourceURL($0) }),
      case .storage? = try? ResourceURL(spec.source),
      let other = spec.headers.first(where: { !Self.isObjectField($0.name.lowercased()) })
    else { return }
    throw InvalidTask(
      "headers",
      """
      \(other.name) is not sent to s3://, which takes Cache-Control, Content-Disposition, Content-Language, Expires and \
      x-amz- fields of an object's access, encryption, tags and locks
      """)
  }

  private func checkChecksum(_ destination: ResourceURL?) throws(InvalidTask) {
    let possible: [Checksum] =
      switch destination {
      case .s3: [.crc32c, .none]
      case .tus: [.sha256, .none]
      case .web: [.none]
      default: Checksum.allCases
      }
    guard let checksum, !possible.contains(checksum) else { return }
    throw InvalidTask(
      "parameters.checksum", "the destination can have \(possible.map(\.rawValue).joined(separator: " or ")) only")
  }

  private func checkCredential(of spec: TaskSpec) throws(InvalidTask) {
    if spec.kind == .copy, (toCredential ?? spec.credential) == spec.credential,
      let source = try? ResourceURL(spec.source), source == spec.destination.flatMap({ try? ResourceURL($0) })
    {
      throw InvalidTask("destination", "it is the source itself")
    }
    guard let toCredential else { return }
    guard spec.kind == .copy else {
      throw InvalidTask("parameters.toCredential", "only a copy can have it: an upload has one credential")
    }
    guard TaskSpec.isName(toCredential, limit: 100) else {
      throw InvalidTask("parameters.toCredential", "must be 1 to 100 letters, digits, \".\", \"_\" or \"-\"")
    }
  }

  private func checkPartSize(_ destination: ResourceURL?) throws(InvalidTask) {
    guard let partSize, let destination else { return }
    let sizes = Self.partSizes(at: destination)
    guard sizes.contains(partSize) else {
      throw InvalidTask("parameters.partSize", "must be from \(sizes.lowerBound) to \(sizes.upperBound)")
    }
  }

  private func checkMetadata(_ destination: ResourceURL?) throws(InvalidTask) {
    var names: Set<String> = []
    let isHeader = if case .s3 = destination { true } else { false }
    for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
      guard HeaderField(name: name, value: "").isSendable else {
        throw InvalidTask("parameters.metadata", "a name is empty or not a token of HTTP")
      }
      guard HeaderField(name: name, value: value).isSendable else {
        throw InvalidTask("parameters.metadata", "the value of \(name) is too long or has control characters")
      }
      // They are header fields there, and each store makes something else of other characters.
      guard !isHeader || value.allSatisfy(\.isASCII) else {
        throw InvalidTask("parameters.metadata", "the value of \(name) has other characters than ASCII, which S3 needs")
      }
      let lowercased = name.lowercased()
      guard !lowercased.hasPrefix("reelhaul-") else {
        throw InvalidTask("parameters.metadata", "names that begin with reelhaul- belong to the upload itself")
      }
      guard names.insert(lowercased).inserted else { throw InvalidTask("parameters.metadata", "\(name) appears twice") }
    }
    let limit = Self.metadataLimit - (isHeader ? Self.ownMetadata : 0)
    guard metadata.reduce(0, { $0 + $1.key.utf8.count + $1.value.utf8.count }) <= limit else {
      throw InvalidTask("parameters.metadata", "longer than \(limit) bytes together")
    }
  }
}

extension InvalidTask {
  /// A failure within the field `parameters`.
  init(_ failure: DecodingFailure) {
    let path = failure.path.map { $0.hasPrefix("[") ? $0 : ".\($0)" }.joined()
    self.init("parameters\(path)", "\(failure.problem)")
  }
}
