/// What one check of the doctor found, and what to do about it.
struct Finding: Sendable, Hashable {
  enum Status: String, Sendable {
    case ok
    case warning
    case failed
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
}

extension [Finding] {
  var exitCode: ExitCode {
    if contains(where: { $0.status == .unreachable }) { return .unreachable }
    return contains { $0.status == .failed } ? .failed : .done
  }
}
