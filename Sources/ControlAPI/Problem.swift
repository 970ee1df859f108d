import HTTPServer
import ReelhaulMessages

/// The closed list of codes of problem details. A code never changes its meaning; `type` is `urn:reelhaul:problem:CODE`.
enum ProblemCode: String, Sendable, CaseIterable {
  case invalidRequest = "invalid_request"
  case unauthorized
  case forbidden
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case timeout = "request_timeout"
  case conflict
  case preconditionFailed = "precondition_failed"
  case tooLarge = "too_large"
  case unsupportedMediaType = "unsupported_media_type"
  case unprocessable
  case keyReused = "idempotency_key_reused"
  case tooManyRequests = "too_many_requests"
  case notImplemented = "not_implemented"
  case unavailable
  case internalError = "internal_error"
  // Why a command cannot be read.
  case empty
  case malformed = "malformed_json"
  case missingField = "missing_field"
  case invalidField = "invalid_field"
  case unknownCommand = "unknown_command"
  /// A command was not applied; `reason` says why.
  case refused
  /// A task with this id was removed.
  case taskRemoved = "task_removed"

  /// The code of a problem that has none of its own.
  init(status: Int) {
    self =
      switch status {
      case 401: .unauthorized
      case 403: .forbidden
      case 404: .notFound
      case 405: .methodNotAllowed
      case 408: .timeout
      case 409: .conflict
      case 412: .preconditionFailed
      case 413, 414, 431: .tooLarge
      case 415: .unsupportedMediaType
      case 422: .unprocessable
      case 429: .tooManyRequests
      case 500: .internalError
      case 501, 505: .notImplemented
      case 503, 504: .unavailable
      default: .invalidRequest
      }
  }
}

extension Rejection.Code {
  var problem: ProblemCode {
    switch self {
    case .empty: .empty
    case .tooLarge: .tooLarge
    case .malformed: .malformed
    case .missingField: .missingField
    case .invalidField: .invalidField
    case .unknownCommand: .unknownCommand
    }
  }
}

extension JSONSchema {
  static let problem = named(
    "Problem",
    .object(
      [
        .must("type", text("`urn:reelhaul:problem:` and the code.")),
        .must("code", text("A stable word for programs.", values: ProblemCode.allCases.map(\.rawValue))),
        .must("title", text("The words of the status.")),
        .must("status", integer("The status of the answer.", 400...599)),
        .must("detail", text("What is wrong, for people.")),
        .may("requestId", text("The `X-Request-Id` of the request.")),
        .may("reason", text("Why a command was refused, as a word: `illegal_transition`, `unknown_task`, …")),
        .may("id", text("Of what Kafka did not confirm: the task.")), .may("command", text("The id of the command.")),
        .may("results", lineResults),
      ], "Problem details, RFC 9457."))
}
