/// Who is to be woken by what, inside one worker. Services are made before they can know each other.
///
/// A hint saves a wait and never more: a worker without any would do the same work later.
// @unchecked: connected once, before the services that call it start.
final class WorkerHints: @unchecked Sendable {
  private var claimer: Claimer?
  private var relay: Relay?

  func connect(_ claimer: Claimer, _ relay: Relay) {
    self.claimer = claimer
    self.relay = relay
  }

  /// More may run, and an event was written.
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
