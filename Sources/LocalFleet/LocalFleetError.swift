/// Why a part of a local fleet cannot run here. The text says what to do about it.
package struct LocalFleetError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}
