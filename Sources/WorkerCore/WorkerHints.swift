/// Wakes services of one worker after events in other services. It connects services that are created before each
/// other.
///
/// A hint only shortens a wait. Without hints a worker would do the same work later.
// @unchecked: connected once, before the services that call it start.
final class WorkerHints: @unchecked Sendable {
  private var claimer: Claimer?
  private var relay: Relay?

  func connect(_ claimer: Claimer, _ relay: Relay) {
    self.claimer = claimer
    self.relay = relay
  }

  /// A run has ended: more tasks may run, and an event was written.
  func runEnded() async {
    await claimer?.runEnded()
    await relay?.hint()
  }

  /// Tasks may have become ready, and events were written.
  func maybeReady() async {
    await claimer?.hint()
    await relay?.hint()
  }

  func eventsWritten() async {
    await relay?.hint()
  }
}
