/// One request to a ``StoreServer`` and its answer.
package struct StoreExchange: Sendable {
  package var request: StoreRequest
  /// The number of body bytes received so far, without the framing of chunks.
  package var bodyLength: Int64 = 0
  /// The status that was sent; nil until then, and forever if the answer was lost.
  package var status: Int?
  /// Whether the store has done what was asked.
  package var wasApplied = false
  package var isFinished = false

  package var operation: StoreOperation { request.operation }
}
