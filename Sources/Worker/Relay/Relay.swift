import Kafka
import System
import TaskStore
import Telemetry

/// Publishes the outbox to the `events` and `tasks` topics: runs what ``RelayPlanner`` decides.
///
/// Rows are discarded after their messages are acknowledged, so an event may be published twice and is never lost;
/// its id is the same both times.
package actor Relay {
  private let loop: EventLoop
  private let store: any TaskStore
  private let keeper: LeaseKeeper
  private let sink: any MessageSink
  private let messages: EventMessages
  private let log: Logger
  private let wakeup: Wakeup
  private var planner = RelayPlanner(now: .now, seed: .random(in: 0 ... .max))
  private var isFailing = false

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `source` names this worker in the events, as a CloudEvents source.
  package init(
    loop: EventLoop, store: any TaskStore, keeper: LeaseKeeper, sink: any MessageSink, topics: TopicPlan,
    source: String, log: Logger
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.sink = sink
    messages = EventMessages(topics: topics, source: source)
    self.log = log
    wakeup = Wakeup(loop: loop)
  }

  /// Events were written.
  package func hint() async {
    planner.hint()
    await wakeup.call()
  }

  /// Runs until its task is canceled.
  package func run() async {
    while !Task.isCancelled {
      do {
        switch planner.next(now: .now) {
        case .wait(let until): await wakeup.sleep(until: until)
        case .lead(let seconds): try await lead(seconds)
        case .relay(let rows): try await relay(rows)
        }
        isFailing = false
      } catch {
        planner.failed(now: .now)
        log.log(isFailing ? .debug : .warning, "the relay holds still", ["error": .text("\(error)")])
        isFailing = true
      }
    }
  }

  private func lead(_ seconds: Int) async throws {
    guard let lease = await keeper.lease else {
      planner.led(false, sentAt: .now, now: .now)
      return
    }
    let sentAt = BootInstant.now
    let leads = try await store.lead(lease.worker, seconds: seconds)
    planner.led(leads, sentAt: sentAt, now: .now)
  }

  private func relay(_ limit: Int) async throws {
    let rows = try await store.pendingEvents(limit: limit)
    let events = rows.flatMap(\.events)
    if !events.isEmpty {
      guard planner.mayPublish(now: .now) else { return }
      try await sink.sendAll(messages.messages(for: events))
    }
    if !rows.isEmpty { try await store.discardEvents(rows.map(\.row)) }
    planner.relayed(rows: rows.count, events: events.count, of: limit, now: .now)
  }
}
