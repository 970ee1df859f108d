package enum LogLevel: Int, Sendable, Comparable, CaseIterable {
  case debug, info, notice, warning, error

  package static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }

  /// `debug`, `info`, `notice`, `warning`, `error`
  package var name: String { String(describing: self) }

  package init?(name: String) {
    guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  /// The syslog priority, for the journal's `<6>` prefix.
  var priority: Int {
    switch self {
    case .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    }
  }
}
