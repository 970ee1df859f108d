import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerCore

extension SimulatedWorker {
  // MARK: Ingest

  func perform(_ actions: [IngestMachine.Action]) async throws {
    for action in actions {
      switch action {
      case .poll: poll()
      case .apply(let range):
        guard let batch else { continue }
        let commands = Array(log.batches[batch].commands[range])
        call(
          { try await $0.apply(commands) },
          then: { worker, outcomes in
            if outcomes != nil {
              worker.claims.hint()
              worker.pumpClaims()
            }
            try await worker.perform(worker.ingest.handle(outcomes.map { .applied($0) } ?? .unavailable))
          })
      case .deliver:
        // The commands of the simulation need no hints and no dead letters.
        later(simulation.latency) { try await $0.perform($0.ingest.handle(.delivered)) }
      case .commit:
        if let batch { log.commit(batch) }
        batch = nil
      case .pause, .resume: break
      case .wait(let duration):
        later(duration) { try await $0.perform($0.ingest.handle(.waited)) }
      }
    }
  }

  private func poll() {
    guard !isDraining else { return }
    guard let next = log.next(for: index) else {
      return later(.milliseconds(50)) { $0.poll() }
    }
    batch = next
    let count = log.batches[next].commands.count
    later(simulation.latency) { try await $0.perform($0.ingest.handle(.batch(commands: count, letters: []))) }
  }

  // MARK: Relay

  func tickRelay() {
    guard !isRelaying else { return }
    let now = now
    switch relay.next(now: now) {
    case .wait(let until):
      wake(at: until) { $0.tickRelay() }
    case .lead(let seconds):
      guard let id = lease.worker else {
        return later(.milliseconds(100)) { $0.tickRelay() }
      }
      isRelaying = true
      call(
        { try await $0.lead(id, seconds: seconds) },
        then: { worker, leads in
          worker.relay.led(leads ?? false, sentAt: now, now: worker.now)
          worker.isRelaying = false
          worker.tickRelay()
        })
    case .fence:
      isRelaying = true
      call(
        { [fleet] _ in fleet.fence() },
        then: { worker, producer in
          guard let producer else { return worker.relayFailed() }
          worker.producer = producer
          worker.relay.fenced()
          worker.isRelaying = false
          worker.tickRelay()
        })
    case .read(let rows):
      isRelaying = true
      let bytes = relay.bytes
      call(
        { try await $0.pendingEvents(limit: rows, bytes: bytes, excluding: []) },
        then: { worker, pending in worker.take(pending, of: rows) })
    case .publish(let ahead, _):
      isRelaying = true
      publish(round, readingAhead: ahead)
    case .look:
      isRelaying = true
      guard lease.worker != nil else { return looked(nil) }
      call(
        { try await $0.pendingRows() },
        then: { worker, rows in
          guard let rows else { return worker.relayFailed() }
          worker.looked(rows)
        })
    case .end:
      handle(.relayed)
    }
  }

  private func looked(_ rows: ClosedRange<Int64>?) {
    relay.looked(rows)
    isRelaying = false
    tickRelay()
  }

  /// The next round is read before the present one has arrived at the broker, because this is the hardest order.
  private func publish(_ current: PendingEvents, readingAhead limit: Int?) {
    guard let limit else { return send(current) { $0.tickRelay() } }
    let (rows, bytes) = (current.wholeRows, relay.bytes)
    call(
      { try await $0.pendingEvents(limit: limit, bytes: bytes, excluding: rows) },
      then: { worker, next in worker.send(current) { $0.take(next, of: limit) } })
  }

  /// The round may arrive long after the term, and after the process has stopped or died.
  private func send(_ current: PendingEvents, then next: @escaping @MainActor (SimulatedWorker) -> Void) {
    let producer = producer
    let delay = simulation.fault(0.02) ? simulation.milliseconds(0...20_000) : .zero
    call(
      after: delay, { [fleet] _ in fleet.published(current, by: producer) },
      then: { worker, isTaken in
        // If the round is not acknowledged or is refused, the rows stay.
        guard isTaken == .some(true) else { return worker.relayFailed(isShutOut: isTaken != .some(nil)) }
        worker.discard(current.wholeRows, then: next)
      })
  }

  private func discard(_ rows: [Int64], then next: @escaping @MainActor (SimulatedWorker) -> Void) {
    call(
      { try await $0.discardEvents(rows) },
      then: { worker, done in
        guard done != nil else { return worker.relayFailed() }
        worker.relay.published()
        worker.isRelaying = false
        next(worker)
      })
  }

  private func take(_ pending: PendingEvents?, of limit: Int) {
    guard let pending else { return relayFailed() }
    round = pending
    relay.read(rows: pending.batches.count, events: pending.eventCount, of: limit, hasMore: pending.hasMore, now: now)
    isRelaying = false
    tickRelay()
  }

  private func relayFailed(isShutOut: Bool = false) {
    relay.failed(now: now, isShutOut: isShutOut)
    isRelaying = false
    later(.milliseconds(20)) { $0.tickRelay() }
  }
}
