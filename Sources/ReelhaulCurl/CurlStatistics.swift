/// What a finished transfer cost.
package struct CurlStatistics: Hashable, Sendable {
  /// Body bytes received.
  package var bytes: Int64
  package var total: Duration
  /// Connections opened for this transfer: 0 if one was reused.
  package var newConnections: Int

  package init(bytes: Int64, total: Duration, newConnections: Int) {
    self.bytes = bytes
    self.total = total
    self.newConnections = newConnections
  }
}
