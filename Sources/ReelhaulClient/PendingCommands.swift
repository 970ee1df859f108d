import ReelhaulKafka

/// Commands that are being sent.
package struct PendingCommands: Sendable {
  private let pending: PendingDeliveries

  init(_ pending: PendingDeliveries) {
    self.pending = pending
  }

  /// Returns when all in-sync replicas have the commands. The error names the commands that were not acknowledged.
  package func acknowledged() async throws(ReelhaulClientError) {
    let deliveries = await pending.value()
    var causes: [Int: KafkaError] = [:]
    for index in deliveries.failures {
      if case .failure(let error) = deliveries[index] { causes[index] = error }
    }
    guard let first = causes.min(by: { $0.key < $1.key }) else { return }
    throw ReelhaulClientError(first.value, causes: causes)
  }
}
