import TaskCore

extension UUID {
  /// One that nothing else has.
  package static func random() -> UUID { UUID(milliseconds: 1_700_000_000_000) }
}
