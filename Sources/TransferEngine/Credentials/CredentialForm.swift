import ReelhaulCodec
import TaskCore

/// The members of a credential's JSON object, as they are written.
struct CredentialForm: Hashable, Sendable {
  /// Who wrote the object.
  enum Author {
    case file
    case command
  }

  /// The members that an object with `s3` has.
  struct S3: Hashable, Sendable {
    var accessKeyID: String?
    var secretAccessKey: String?
    var sessionToken: String?
    var region: String?
    var endpoint: String?
    var pathStyle: Bool?
  }

  var hosts: [CredentialHost] = []
  var allowsHTTP: Bool?
  var bearer: String?
  var user: String?
  var password: String?
  var headers: [HeaderField]?
  var s3: S3?
  var hookSecret: String?
  var command: [String]?
  var expiration: Timestamp?

  /// Reads an object. Unknown fields are errors, because a mistyped word could send too much or nothing.
  init(from reader: inout JSONReader, by author: Author) throws(DecodingFailure) {
    var isAWS = false
    try reader.object { reader, name throws(DecodingFailure) in
      switch (name.text, author) {
      case ("hosts", _): hosts = try CredentialHost.list(from: &reader)
      case ("allowHTTP", _): allowsHTTP = try reader.bool()
      case ("bearer", _): bearer = try reader.string(limit: 8192)
      case ("user", _): user = try reader.string(limit: 1024)
      case ("password", _): password = try reader.string(limit: 1024)
      case ("headers", _): headers = try HeaderField.secrets(from: &reader)
      case ("s3", _): s3 = try S3(from: &reader, merging: s3)
      case ("hookSecret", .file): hookSecret = try reader.string(limit: 1024)
      case ("command", .file): command = try Self.command(from: &reader)
      case ("expiration", .command), ("Expiration", .command): expiration = try reader.expiration()
      case ("Version", .command):
        guard try reader.integer(0...Int.max) == 1 else { throw reader.invalid("expected 1") }
        isAWS = true
      case ("AccessKeyId", .command): s3 = try s3.with(\.accessKeyID, reader.accessKeyID())
      case ("SecretAccessKey", .command): s3 = try s3.with(\.secretAccessKey, reader.secretAccessKey())
      case ("SessionToken", .command): s3 = try s3.with(\.sessionToken, reader.sessionToken())
      // AWS's own programs print it too.
      case ("AccountId", .command): try reader.skip()
      case (_, .file):
        throw reader.failure(
          .invalidValue("expected hosts, bearer, user, password, headers, s3, hookSecret, command or allowHTTP"))
      case (_, .command):
        throw reader.failure(
          .invalidValue("expected hosts, bearer, user, password, headers, s3, expiration or allowHTTP"))
      }
    }
    if isAWS, s3?.accessKeyID == nil { throw reader.missing("AccessKeyId") }
  }

  private static func command(from reader: inout JSONReader) throws(DecodingFailure) -> [String] {
    var words: [String] = []
    try reader.array { reader, _ throws(DecodingFailure) in
      let word = try reader.string(limit: 8192)
      guard !word.utf8.contains(0) else { throw reader.invalid("an argument must not contain a zero byte") }
      words.append(word)
    }
    guard words.first?.isEmpty == false else { throw reader.failure(.invalidValue("expected a program and arguments")) }
    return words
  }
}

extension CredentialForm.S3 {
  /// - Parameter other: What the object has already said of the same keys in another form.
  fileprivate init(from reader: inout JSONReader, merging other: Self?) throws(DecodingFailure) {
    self = other ?? Self()
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "accessKeyId": accessKeyID = try reader.accessKeyID()
      case "secretAccessKey": secretAccessKey = try reader.secretAccessKey()
      case "sessionToken": sessionToken = try reader.sessionToken()
      case "region":
        let text = try reader.string(limit: 64)
        guard S3Credential.isRegion(text) else { throw reader.invalid("expected a region, such as eu-west-1") }
        region = text
      case "endpoint":
        let text = try reader.string(limit: 2048)
        guard S3Endpoint.url(text, allowsHTTP: true) != nil else {
          throw reader.invalid("expected an http or https URL without user, query and percent signs")
        }
        endpoint = text
      case "pathStyle": pathStyle = try reader.bool()
      default:
        throw reader.failure(
          .invalidValue("expected accessKeyId, secretAccessKey, sessionToken, region, endpoint or pathStyle"))
      }
    }
  }
}

extension CredentialForm.S3? {
  fileprivate func with(_ path: WritableKeyPath<CredentialForm.S3, String?>, _ value: String) -> CredentialForm.S3 {
    var changed = self ?? CredentialForm.S3()
    changed[keyPath: path] = value
    return changed
  }
}

extension JSONReader {
  fileprivate mutating func accessKeyID() throws(DecodingFailure) -> String {
    let text = try string(limit: 256)
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/,=\"".utf8.contains($0) }) else {
      throw invalid("it cannot be the id of a key")
    }
    return text
  }

  fileprivate mutating func secretAccessKey() throws(DecodingFailure) -> String {
    let text = try string(limit: 1024)
    guard !text.isEmpty else { throw invalid("it is empty") }
    return text
  }

  fileprivate mutating func sessionToken() throws(DecodingFailure) -> String {
    let text = try string(limit: 8192)
    guard !text.isEmpty, HeaderField(name: "x-amz-security-token", value: text).isSendable else {
      throw invalid("it cannot be sent as a header field")
    }
    return text
  }

  fileprivate mutating func expiration() throws(DecodingFailure) -> Timestamp {
    let text = try string(limit: 64)
    do throws(InvalidTimestamp) { return try Timestamp(rfc3339: text) } catch { throw invalid("\(error)") }
  }
}

extension CredentialHost {
  fileprivate static func list(from reader: inout JSONReader) throws(DecodingFailure) -> [CredentialHost] {
    var hosts: [CredentialHost] = []
    try reader.array { reader, _ throws(DecodingFailure) in
      guard let host = CredentialHost(try reader.string(limit: 300)) else {
        throw reader.invalid("expected HOST, HOST:PORT or *.DOMAIN")
      }
      hosts.append(host)
    }
    return hosts
  }
}

extension HeaderField {
  fileprivate static func secrets(from reader: inout JSONReader) throws(DecodingFailure) -> [HeaderField] {
    var fields: [HeaderField] = []
    try reader.object { reader, name throws(DecodingFailure) in
      let field = HeaderField(name: name.text, value: try reader.string(limit: 8192))
      guard !field.isReserved else { throw reader.invalid("is set by the transfer itself") }
      fields.append(field)
    }
    return fields
  }
}
