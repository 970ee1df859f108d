import TaskCore

/// One request and its answer.
package struct OriginExchange: Sendable {
  package var request: OriginRequest
  /// Nil until the head is sent.
  package var status: Int?
  /// The parts of the file that were given to the socket.
  package var sent = ByteRanges()
  /// Until its last bytes are sent.
  var isInProgress = true
  package var isFinished = false
}
