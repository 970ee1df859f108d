import Glibc
import ReelhaulSystem
import TaskCore

/// The keys of AWS's own environment variables and files. They are read only if the worker's settings say so.
package enum AWSCredentials {
  /// The keys and their place, or nil if there are none. Blocks.
  ///
  /// The variables come first, then the files: `AWS_SHARED_CREDENTIALS_FILE` or `~/.aws/credentials`, and
  /// `AWS_CONFIG_FILE` or `~/.aws/config`, in the profile `AWS_PROFILE` or `default`.
  package static func standard(environment: [String: String]) throws(UnusableFile) -> S3Credential? {
    func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    let (id, secret) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
    let sections = try sections(environment, hasKeys: id != nil)
    let profile = sections.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    guard (id == nil) == (secret == nil) else {
      throw UnusableFile(description: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together")
    }
    let keys: (id: String, secret: String, token: String?)
    if let id, let secret {
      keys = (id, secret, variable("AWS_SESSION_TOKEN"))
    } else {
      let held = sections.first { $0["aws_access_key_id"] != nil || $0["aws_secret_access_key"] != nil }
      try refuse(profile, hasKeys: held != nil)
      guard let held else { return nil }
      guard let id = held["aws_access_key_id"], let secret = held["aws_secret_access_key"] else {
        throw UnusableFile(
          description: "the profile in AWS's files has only one of aws_access_key_id and aws_secret_access_key")
      }
      keys = (id, secret, held["aws_session_token"])
    }
    let region =
      variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? profile["region"] ?? S3Credential.standardRegion
    let endpoint =
      variable("AWS_ENDPOINT_URL_S3") ?? variable("AWS_ENDPOINT_URL") ?? profile["s3.endpoint_url"]
      ?? profile["endpoint_url"]
    let style = profile["s3.addressing_style"]
    let credential = S3Credential(
      accessKeyID: keys.id, secretAccessKey: keys.secret, sessionToken: keys.token, region: region,
      endpoint: endpoint, pathStyle: style == "path" ? true : style == "virtual" ? false : nil)
    try check(credential)
    return credential
  }

  /// The members of the profile in each of the files, that of keys first. A file that is none, or that this worker may
  /// not read, is left out where the keys are known (`hasKeys`) and nobody names a profile.
  private static func sections(
    _ environment: [String: String], hasKeys: Bool
  ) throws(UnusableFile) -> [[String: String]] {
    let named = environment["AWS_PROFILE"].flatMap { $0.isEmpty ? nil : $0 }
    let name = named ?? "default"
    let home = environment["HOME"] ?? ""
    let isNeeded = !hasKeys || named != nil
    let keys = try sections(
      environment["AWS_SHARED_CREDENTIALS_FILE"] ?? "\(home)/.aws/credentials", isNeeded: isNeeded)
    let config = try sections(environment["AWS_CONFIG_FILE"] ?? "\(home)/.aws/config", isNeeded: isNeeded)
    let found = [keys[name], config["profile \(name)"], name == "default" ? config[name] : nil].compactMap(\.self)
    if let named, found.isEmpty {
      throw UnusableFile(description: "AWS_PROFILE is \"\(named)\", but AWS's files have no such profile")
    }
    return found
  }

  /// Nothing of a file that does not exist.
  private static func sections(_ path: String, isNeeded: Bool) throws(UnusableFile) -> [String: [String: String]] {
    do {
      return AWSProfiles.parse(String(decoding: try FileDescriptor.regular(path).contents(), as: UTF8.self))
    } catch let error as SystemError where error.errno == ENOENT || error.errno == ENOTDIR {
      return [:]
    } catch {
      let isLeftOut = error is UnusableFile || (error as? SystemError)?.errno == EACCES
      guard isLeftOut, !isNeeded else { throw error as? UnusableFile ?? UnusableFile(description: "\(error)") }
      return [:]
    }
  }

  /// A profile that gets its keys in a way that is not read here must not look like none, nor act as another user than with
  /// AWS's own clients, for which most of these ways come before keys.
  private static func refuse(_ profile: [String: String], hasKeys: Bool) throws(UnusableFile) {
    let others =
      ["role_arn", "sso_session", "sso_start_url", "web_identity_token_file"] + (hasKeys ? [] : ["credential_process"])
    guard let other = others.first(where: { profile[$0] != nil }) else { return }
    throw UnusableFile(
      description: "the profile in AWS's files has \(other), which is not read here: name a credential with a command")
  }

  /// The checks that the worker's own file has too.
  private static func check(_ credential: S3Credential) throws(UnusableFile) {
    guard S3Credential.isRegion(credential.region) else {
      throw UnusableFile(description: "the region in AWS's environment or files is not the name of a region")
    }
    let fields = [credential.accessKeyID, credential.sessionToken ?? "-"].map { HeaderField(name: "x", value: $0) }
    guard fields.allSatisfy(\.isSendable), !credential.accessKeyID.contains(where: { "/, \"=".contains($0) }) else {
      throw UnusableFile(description: "the keys in AWS's environment or files cannot be sent as a header field")
    }
    guard S3Endpoint.url(credential.endpointURL, allowsHTTP: true) != nil else {
      throw UnusableFile(description: "the endpoint in AWS's environment or files is not an http or https URL")
    }
    guard S3Endpoint.url(credential.endpointURL, allowsHTTP: false) != nil else {
      throw UnusableFile(
        description: """
          the endpoint in AWS's environment or files is without TLS: name a credential with "allowHTTP": true
          """)
    }
  }
}
