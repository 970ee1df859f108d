import TaskCore

extension UniqueID {
  /// One that nothing else has.
  package static func random() -> UniqueID { UniqueID(milliseconds: 1_700_000_000_000) }
}
