import ReelhaulCodec

/// Why a message is no command; it goes with the untouched message to the dead letters.
package struct Rejection: Error, Hashable, Sendable {
  /// A stable word for programs and metrics.
  package enum Code: String, Sendable, CaseIterable {
    case empty
    case tooLarge = "too_large"
    /// Not the JSON of RFC 8259, or with a name twice in one object.
    case malformed = "malformed_json"
    case missingField = "missing_field"
    case invalidField = "invalid_field"
    case unknownCommand = "unknown_command"
  }

  package var code: Code
  /// One sentence for people: the field, what is wrong, where.
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
