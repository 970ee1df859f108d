import TaskCore

extension UniqueID {
  /// An id that nothing else has.
  package static func random() -> UniqueID { UniqueID(milliseconds: 1_700_000_000_000) }
}
