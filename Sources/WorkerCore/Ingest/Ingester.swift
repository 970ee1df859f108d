import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// Carries commands from Kafka into the store. ``IngestMachine`` makes the decisions.
package actor Ingester {
  private struct Batch {
    var source: CommandBatch
    var commands: [Command] = []
    /// The record that each command was read from.
    var origins: [Int] = []
    /// The letters that are written, by their place in the list. They are not written again, however often others fail.
    var written: Set<Int> = []
  }

  private let loop: EventLoop
  private let source: any CommandSource
  private let store: any CommandStore
  private let sink: any MessageSink
  private let topics: TopicPlan
  private let metrics: WorkerMetrics
  private let tracer: Tracer?
  private let log: Logger
  /// Called when commands were applied, because there may be new work.
  private let onApplied: @Sendable () async -> Void
  private var machine = IngestMachine(seed: .random(in: 0 ... .max))
  private var batch: Batch?
  private var outage = Outage()

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, source: any CommandSource, store: any CommandStore, sink: any MessageSink, topics: TopicPlan,
    metrics: WorkerMetrics, tracer: Tracer? = nil, log: Logger, onApplied: @escaping @Sendable () async -> Void
  ) {
    self.loop = loop
    self.source = source
    self.store = store
    self.sink = sink
    self.topics = topics
    self.metrics = metrics
    self.tracer = tracer
    self.log = log
    self.onApplied = onApplied
  }

  /// Runs until its task is canceled or the source is closed. A batch that has begun is finished if the store and the
  /// broker answer; otherwise it is delivered again.
  package func run() async {
    var actions = machine.start()[...]
    while let action = actions.popFirst() {
      guard let event = await perform(action) else { continue }
      if case .batch(_, let letters) = event, !letters.isEmpty {
        log.notice("commands that cannot be understood become dead letters", ["count": .integer(letters.count)])
      }
      actions += machine.handle(event)
    }
  }

  private func perform(_ action: IngestMachine.Action) async -> IngestMachine.Event? {
    switch action {
    case .poll: return await poll()
    case .apply(let range): return await apply(range)
    case .deliver(let letters, let signals): return await deliver(letters, signals)
    case .commit:
      batch?.source.commit()
      metrics.commandsDone()
      batch = nil
      return nil
    case .pause:
      source.pause()
      return nil
    case .resume:
      source.resume()
      log.notice("ingest continues")
      return nil
    case .wait(let duration):
      do {
        try await loop.sleep(for: duration)
      } catch {
        return nil
      }
      return .waited
    }
  }

  private func poll() async -> IngestMachine.Event? {
    do {
      guard !Task.isCancelled, let received = try await source.next() else { return nil }
      var batch = Batch(source: received)
      var letters: [IngestMachine.Letter] = []
      for (index, record) in received.records.enumerated() {
        do throws(Rejection) {
          batch.commands.append(try record.command())
          batch.origins.append(index)
        } catch {
          letters.append(.init(index: .record(index), code: error.code.rawValue, reason: error.reason))
        }
      }
      metrics.read(received.records)
      metrics.unreadable(letters.count)
      self.batch = batch
      return .batch(commands: batch.commands.count, letters: letters)
    } catch is CancellationError {
      return nil
    } catch {
      log.error("commands can no longer be read from Kafka", ["error": .text("\(error)")])
      return nil
    }
  }

  private func apply(_ range: Range<Int>) async -> IngestMachine.Event {
    guard let batch else { return .applied([]) }
    do {
      let commands = Array(batch.commands[range])
      let begin = Timestamp(microseconds: Clocks.realtimeMicroseconds())
      let outcomes = try await loop.uninterrupted { [store] in try await store.apply(commands) }
      outage.recovered()
      for (command, outcome) in zip(commands, outcomes) { metrics.answered(command, outcome) }
      tracer?.submitted(commands, outcomes, since: begin)
      await onApplied()
      return .applied(outcomes)
    } catch let error as StoreError where error.blamesItems(of: range.count) {
      log.error("the store refuses commands", ["count": .integer(range.count), "error": .text("\(error)")])
      // A larger range is halved and asked again.
      if range.count == 1 { metrics.refused(batch.commands[range.lowerBound]) }
      return .refused(reason: "\(error)")
    } catch {
      log.log(outage.failed(error), "the store accepts no commands: ingest waits", ["error": .text("\(error)")])
      return .unavailable
    }
  }

  private func deliver(_ letters: [IngestMachine.Letter], _ signals: [Int]) async -> IngestMachine.Event {
    guard let batch else { return .delivered }
    // The signals are not awaited, because a renewal brings the intents too.
    for index in signals { sink.offer(Signal(taskID: batch.commands[index].taskID).message(topic: topics.signals)) }
    let pending = letters.indices.filter { !batch.written.contains($0) }
    var failures = await write(pending, of: letters)
    let tooLong = failures.filter { $0.value.code == .messageTooLarge }
    if let first = tooLong.first {
      // The topic accepts smaller records than the record's own topic. Repeating would never help, and would block all
      // later records.
      log.warning("a dead letter is too long and is truncated", ["error": .text("\(first.value)")])
      failures = failures.filter { tooLong[$0.key] == nil }
      failures.merge(await write(tooLong.keys.sorted(), of: letters, cut: true)) { $1 }
    }
    guard let failure = failures.first else {
      outage.recovered()
      return .delivered
    }
    log.log(
      outage.failed(failure.value), "dead letters cannot be written: ingest waits",
      ["error": .text("\(failure.value)")])
    return .deliveryFailed
  }

  /// Writes the letters at these places, and returns the errors of those that are not written.
  private func write(
    _ places: [Int], of letters: [IngestMachine.Letter], cut: Bool = false
  ) async -> [Int: KafkaError] {
    guard let batch, !places.isEmpty else { return [:] }
    let failures = await sink.failures(writing: places.map { message(for: letters[$0], of: batch, cut: cut) })
    self.batch?.written.formUnion(places.indices.lazy.filter { failures[$0] == nil }.map { places[$0] })
    return Dictionary(uniqueKeysWithValues: failures.map { (places[$0.key], $0.value) })
  }

  private func message(for letter: IngestMachine.Letter, of batch: Batch, cut: Bool = false) -> KafkaMessage {
    let index =
      switch letter.index {
      case .record(let index): index
      case .command(let index): batch.origins[index]
      }
    return DeadLetterMessage.message(
      for: batch.source.records[index], code: letter.code, reason: letter.reason, topic: topics.deadLetters, cut: cut)
  }
}
