import ReelhaulCurl
import ReelhaulSystem
import TaskCore

extension CredentialFile? {
  /// What is sent for a task that names `credential`, to `source` and nowhere else. Blocks.
  ///
  /// Where this worker has no such credential, or cannot read it, the task waits: another worker may have it. A credential
  /// that is not for the source's host is no mistake that waiting mends.
  func fields(of credential: String, for source: CurlURL) throws(TaskFailure) -> [HeaderField] {
    let known: [String: Credential]
    do throws(UnusableFile) {
      known = try self?.credentials() ?? [:]
    } catch {
      throw TaskFailure(
        code: .credentialsUnusable, message: "the worker on \(Machine.hostName): \(error)", class: .wait)
    }
    guard let found = known[credential] else {
      throw TaskFailure(
        code: .credentialUnknown, message: "the worker on \(Machine.hostName) has no credential \"\(credential)\"",
        class: .wait)
    }
    guard found.isFor(source) else {
      let origin = "\(source.scheme)://\(source.server)"
      throw TaskFailure(
        code: .credentialRefused, message: "the credential \"\(credential)\" is not for \(origin)", class: .fail)
    }
    return found.fields
  }
}
