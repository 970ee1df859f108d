/// Why a task cannot be accepted.
public struct InvalidTask: Error, Hashable, Sendable {
  /// The field as it is named in JSON: `source`, `expect.sha256` …
  public var field: String
  /// What is wrong with it, for people; it never repeats a URL or a header's value.
  public var message: String

  public init(_ field: String, _ message: String) {
    self.field = field
    self.message = message
  }
}

extension InvalidTask: CustomStringConvertible {
  public var description: String { "\(field): \(message)" }
}
