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
    let failures = deliveries.failures
    guard let first = failures.first else { return }
    do throws(KafkaError) {
      _ = try deliveries[first].get()
    } catch {
      throw ReelhaulClientError(error, failures: failures)
    }
  }
}
