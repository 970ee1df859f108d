/// What to do when the destination exists already.
public enum IfExists: String, Sendable, CaseIterable {
  /// The task fails with `destination_exists`.
  case fail
  /// The task succeeds and changes nothing.
  case skip
  /// The finished file replaces the old one, atomically.
  case replace
}
