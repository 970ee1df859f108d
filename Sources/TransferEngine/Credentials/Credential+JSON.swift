import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import TaskCore

extension Credential {
  /// Reads an object of credentials by name. Unknown fields are errors, because a mistyped word could send too much or
  /// nothing.
  static func all(_ bytes: [UInt8]) throws(DecodingFailure) -> [String: Credential] {
    var all: [String: Credential] = [:]
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        let form = try CredentialForm(from: &reader, by: .file)
        all[name.text] = try reader.credential(form)
      }
    }
    return all
  }

  /// Reads what a command has printed: one object.
  static func printed(_ bytes: [UInt8], by command: CredentialCommand) throws(DecodingFailure) -> Credential {
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      var form = try CredentialForm(from: &reader, by: .command)
      let defaults = command.defaults
      if form.hosts.isEmpty { form.hosts = defaults.hosts }
      form.allowsHTTP = form.allowsHTTP ?? defaults.allowsHTTP
      if var s3 = form.s3 {
        s3.region = s3.region ?? defaults.s3?.region
        s3.endpoint = s3.endpoint ?? defaults.s3?.endpoint
        s3.pathStyle = s3.pathStyle ?? defaults.s3?.pathStyle
        form.s3 = s3
      }
      return try reader.credential(form)
    }
  }
}

extension JSONReader {
  /// The credential of the object that was read last.
  fileprivate func credential(_ form: CredentialForm) throws(DecodingFailure) -> Credential {
    // A command has an `s3` beside it, which says only where its keys are for.
    let s3 = form.command == nil ? form.s3 : nil
    let kinds = [
      form.bearer != nil, form.user != nil, form.headers != nil, s3 != nil, form.hookSecret != nil,
      form.command != nil,
    ]
    guard !form.hosts.isEmpty || s3 != nil || form.command != nil else { throw missing("hosts") }
    guard kinds.count(where: \.self) == 1, (form.user == nil) == (form.password == nil) else {
      throw failure(
        .invalidValue("expected exactly one of bearer, user with password, headers, s3, hookSecret, or command"))
    }
    var credential = Credential(fields: [], hosts: form.hosts, allowsHTTP: form.allowsHTTP ?? false)
    credential.expiresAt = form.expiration
    if let bearer = form.bearer {
      credential.fields = [HeaderField(name: "Authorization", value: "Bearer \(bearer)")]
    } else if let user = form.user, let password = form.password {
      guard !user.contains(":") else { throw failure(.invalidValue("a user name must not contain a colon")) }
      credential.fields = [
        HeaderField(name: "Authorization", value: "Basic \(Base64.encode("\(user):\(password)".utf8))")
      ]
    } else if let headers = form.headers {
      credential.fields = headers
    } else if let s3 {
      try add(s3, to: &credential)
    } else if let secret = form.hookSecret {
      guard HookSignature.key(secret) != nil else {
        throw failure(.invalidValue("expected a text, or whsec_ and Base64")).within("hookSecret")
      }
      credential.hookSecret = secret
    } else if let words = form.command {
      credential.command = CredentialCommand(words: words, defaults: try defaults(form))
    }
    guard credential.fields.allSatisfy(\.isSendable) else {
      throw failure(.invalidValue("it cannot be sent as a header field"))
    }
    return credential
  }

  private func add(_ form: CredentialForm.S3, to credential: inout Credential) throws(DecodingFailure) {
    guard let accessKeyID = form.accessKeyID else { throw missing("accessKeyId").within("s3") }
    guard let secretAccessKey = form.secretAccessKey else { throw missing("secretAccessKey").within("s3") }
    let s3 = S3Credential(
      accessKeyID: accessKeyID, secretAccessKey: secretAccessKey, sessionToken: form.sessionToken,
      region: form.region ?? S3Credential.standardRegion, endpoint: form.endpoint, pathStyle: form.pathStyle,
      allowsHTTP: credential.allowsHTTP, expiresAt: credential.expiresAt)
    guard let url = S3Endpoint.url(s3.endpointURL, allowsHTTP: true) else {
      throw failure(.invalidValue("it is not the URL of an endpoint")).within("endpoint").within("s3")
    }
    guard url.scheme == "https" || credential.allowsHTTP else {
      throw failure(.invalidValue("an http endpoint needs \"allowHTTP\": true")).within("endpoint").within("s3")
    }
    guard credential.hosts.isEmpty || credential.isFor(url) else {
      throw failure(.invalidValue("they do not contain the endpoint's host")).within("hosts")
    }
    credential.s3 = s3
  }

  /// What stands beside a command.
  private func defaults(_ form: CredentialForm) throws(DecodingFailure) -> CredentialForm {
    guard form.s3?.accessKeyID == nil, form.s3?.secretAccessKey == nil, form.s3?.sessionToken == nil else {
      throw failure(.invalidValue("the command tells the keys")).within("s3")
    }
    var defaults = form
    defaults.command = nil
    return defaults
  }
}
