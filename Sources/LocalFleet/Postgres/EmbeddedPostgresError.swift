/// Why a private PostgreSQL cannot run here. The text says what to do about it.
package struct EmbeddedPostgresError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}
