/// A typed field of a log line. It has no case for a secret, because secrets are never logged.
package enum LogValue: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
  case text(String)
  case integer(Int64)
  case double(Double)
  case bool(Bool)

  package init(stringLiteral value: String) { self = .text(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }

  package static func integer(_ value: some BinaryInteger) -> LogValue { .integer(Int64(clamping: value)) }
  /// The text of any value: an id, an error.
  package static func of(_ value: some CustomStringConvertible) -> LogValue { .text(value.description) }
}
