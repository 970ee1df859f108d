/// A correct request could not be carried out. Programs end with exit code 1.
package struct WorkError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The failure, in one sentence.
  package var message: String
  /// What to do about it, in one sentence, or nil.
  package var hint: String?

  package init(_ message: String, hint: String? = nil) {
    self.message = message
    self.hint = hint
  }

  package var description: String { hint.map { "\(message)\n\($0)" } ?? message }
}
