import ReelhaulCurl
import ReelhaulSystem
import TaskCore

extension CredentialFile? {
  /// The header fields for a task that names `credential`. They may be sent to `source` and nowhere else. Blocks.
  ///
  /// If this worker lacks the credential or cannot read it, the task waits, because another worker may have it. If the
  /// credential is not for the source's host, waiting does not help, and the task fails.
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
