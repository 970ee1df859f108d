/// Why a text is no ``Timestamp``.
public enum InvalidTimestamp: Error, Hashable, Sendable {
  /// No time of RFC 3339, or none of the years 1 to 9999.
  case form
  /// A second 60 where none can have been.
  case leapSecond
}

extension InvalidTimestamp: CustomStringConvertible {
  public var description: String {
    switch self {
    case .form: "expected a time of RFC 3339, such as 2026-11-21T14:17:26Z"
    case .leapSecond: "second 60 exists only at the end of a month in UTC"
    }
  }
}
