import ReelhaulCodec

/// Why a message is not a command. It is sent to the dead letters with the unchanged message.
package struct Rejection: Error, Hashable, Sendable {
  /// A stable word for programs and metrics.
  package enum Code: String, Sendable, CaseIterable {
    case empty
    case tooLarge = "too_large"
    /// Not JSON by RFC 8259, or a name appears twice in one object.
    case malformed = "malformed_json"
    case missingField = "missing_field"
    case invalidField = "invalid_field"
    case unknownCommand = "unknown_command"
  }

  package var code: Code
  /// One sentence for people: the field, the problem, the position.
  package var reason: String

  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  package init(_ failure: DecodingFailure) {
    let code: Code =
      switch failure.problem {
      case .emptyInput: .empty
      case .inputTooLong: .tooLarge
      case .missing: .missingField
      case .invalidValue, .expected, .notAnInteger, .integerOverflow, .stringTooLong, .unknownName:
        failure.path.isEmpty ? .malformed : .invalidField
      default: .malformed
      }
    self.init(code, failure.description)
  }
}
