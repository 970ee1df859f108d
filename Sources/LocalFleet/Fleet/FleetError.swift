/// Why a local fleet cannot run. The text says what to do about it.
package struct FleetError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}
