/// What a finished transfer cost.
package struct CurlStatistics: Hashable, Sendable {
  /// Body bytes received.
  package var bytes: Int64
  /// From the start until the first byte of the response.
  package var timeToFirstByte: Duration
  package var total: Duration
  /// Connections opened for it: 0 where one was reused.
  package var newConnections: Int

  package init(bytes: Int64, timeToFirstByte: Duration, total: Duration, newConnections: Int) {
    self.bytes = bytes
    self.timeToFirstByte = timeToFirstByte
    self.total = total
    self.newConnections = newConnections
  }
}
