import ReelhaulCodec
import ReelhaulDigest
import TaskCore

extension Credential {
  /// Reads an object of credentials by name. Unknown fields are errors, because a mistyped word could send too much or
  /// nothing.
  static func all(_ bytes: [UInt8]) throws(DecodingFailure) -> [String: Credential] {
    var all: [String: Credential] = [:]
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in all[name.text] = try Credential(from: &reader) }
    }
    return all
  }

  private init(from reader: inout JSONReader) throws(DecodingFailure) {
    self.init(fields: [], hosts: [])
    var (user, password): (String?, String?)
    var kinds = 0
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "hosts": hosts = try CredentialHost.list(from: &reader)
      case "allowHTTP": allowsHTTP = try reader.bool()
      case "bearer":
        kinds += 1
        fields = [HeaderField(name: "Authorization", value: "Bearer \(try reader.string(limit: 8192))")]
      case "user":
        kinds += 1
        user = try reader.string(limit: 1024)
      case "password": password = try reader.string(limit: 1024)
      case "headers":
        kinds += 1
        fields = try HeaderField.secrets(from: &reader)
      default: throw reader.failure(.invalidValue("expected hosts, bearer, user, password, headers or allowHTTP"))
      }
    }
    guard !hosts.isEmpty else { throw reader.missing("hosts") }
    guard kinds == 1, (user == nil) == (password == nil) else {
      throw reader.failure(.invalidValue("expected exactly one of bearer, user with password, or headers"))
    }
    if let user, let password {
      guard !user.contains(":") else { throw reader.failure(.invalidValue("a user name must not contain a colon")) }
      fields = [HeaderField(name: "Authorization", value: "Basic \(Base64.encode("\(user):\(password)".utf8))")]
    }
    guard fields.allSatisfy(\.isSendable) else {
      throw reader.failure(.invalidValue("it cannot be sent as a header field"))
    }
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
