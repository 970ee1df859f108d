/// A program that prints a credential, and what the worker's file says in addition. Its description shows no arguments,
/// because these may be secret.
package struct CredentialCommand: Hashable, Sendable {
  /// The program and its arguments.
  package var words: [String]
  /// Members that the program may leave out.
  var defaults: CredentialForm
}

extension CredentialCommand: CustomStringConvertible, CustomReflectable {
  package var description: String { "a command for a credential" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
