/// The result of one check of the doctor, and the advice about it.
struct Finding: Sendable, Hashable {
  enum Status: String, Sendable {
    case ok
    case warning
    case failed
    /// A setting is missing or wrong.
    case misconfigured
    /// A service does not answer.
    case unreachable
    case skipped
  }

  var check: String
  var status: Status
  var message: String
  var advice: String?

  init(_ check: String, _ status: Status, _ message: String, advice: String? = nil) {
    self.check = check
    self.status = status
    self.message = message
    self.advice = advice
  }

  /// For a check that could not be made.
  init(_ check: String, _ failure: CommandFailure, advice: String?) {
    let status: Status =
      switch failure.code {
      case .usage: .misconfigured
      case .unreachable: .unreachable
      case .done, .failed, .notFound, .refused: .failed
      }
    self.init(check, status, failure.message, advice: advice)
  }
}

extension [Finding] {
  var exitCode: ExitCode {
    let statuses = Set(map(\.status))
    if statuses.contains(.unreachable) { return .unreachable }
    if statuses.contains(.misconfigured) { return .usage }
    return statuses.contains(.failed) ? .failed : .done
  }
}
