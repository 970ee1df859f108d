import ReelhaulMessages
import ReelhaulSystem
import ReelhaulTelemetry
import Synchronization
import TaskCore
import TaskStore

/// What a worker counts of its tasks, its lease, and its traffic with the store. Any thread may add to it.
package final class WorkerMetrics: Sendable {
  /// What became of a run.
  package enum Outcome: Int, CaseIterable, Sendable {
    case succeeded
    case failed
    case canceled
    /// It failed, and its task is tried again.
    case retried
    /// Its task waits again, and the attempt does not count.
    case handedBack
    /// It did not own its task any more.
    case lost
  }

  package enum LeaseEnd: Int, CaseIterable, Sendable {
    /// The worker could not renew it in time.
    case expired
    /// The store had given it up already.
    case revoked
  }

  /// Why a write for a run was refused.
  package enum Refusal: Int, CaseIterable, Sendable {
    /// The store: another run owns the task.
    case epoch
    /// The worker itself: its lease is over.
    case lease
  }

  package enum CommandResult: Int, CaseIterable, Sendable {
    case applied, duplicate, refused
    /// It could not be understood.
    case deadLetter
  }

  /// Further names of queues count as one.
  private static let queues = 50
  private static let unreadable = "unreadable"

  private let kinds: [String: Int]
  private let otherKind: Int
  private let queues = MetricNames(limit: WorkerMetrics.queues)
  private let commandNames: [String: Int]
  private let wait: DurationHistogram
  private let run: DurationHistogram
  private let settled: CountedMetric
  private let failures: CountedMetric
  private let commands: CountedMetric
  let claims = DurationHistogram("reelhaul_claim_seconds", help: "How long claims took at the store.")
  let settlements = DurationHistogram(
    "reelhaul_settle_seconds", help: "How long the store took to write the ends of runs.")
  private let leasesLost = CountedMetric.counter(
    "reelhaul_leases_lost_total", MetricLabel("cause", LeaseEnd.self), help: "Leases that ended under the worker.")
  private let fencedWrites = CountedMetric.counter(
    "reelhaul_fenced_writes_total", MetricLabel("cause", Refusal.self),
    help: "Checkpoints and ends of runs that were refused, because the run no longer owned its task.")
  private let hooksGivenUp = CountedMetric.counter(
    "reelhaul_hooks_given_up_total", help: "Events that were not delivered to their web hook, and are not tried again.")
  /// When the oldest command was written that is being applied, in milliseconds since 1970; 0 where there is none.
  private let oldestCommand = Atomic<Int64>(0)

  /// By how much this machine's clock is ahead of the store's, in microseconds.
  private let clockOffset = Atomic<Int64>(0)

  package init(kinds names: [TaskKind]) {
    let names = names.map(\.rawValue).filter { $0 != MetricNames.other }
    kinds = Dictionary(uniqueKeysWithValues: zip(names, 0...))
    otherKind = names.count
    let kind = MetricLabel("kind", names + [MetricNames.other])
    let outcome = MetricLabel("outcome", Outcome.self)
    let commandNames = ["submit"] + ControlAction.names + [Self.unreadable]
    self.commandNames = Dictionary(uniqueKeysWithValues: zip(commandNames, 0...))
    wait = DurationHistogram(
      "reelhaul_task_wait_seconds", MetricLabel("queue", queues), kind, buckets: DurationHistogram.Buckets.tasks,
      help: "How long tasks were ready before their first run. The worker that publishes the events counts it.")
    run = DurationHistogram(
      "reelhaul_task_run_seconds", kind, outcome, buckets: DurationHistogram.Buckets.tasks,
      help: "How long runs took.")
    settled = .counter("reelhaul_tasks_settled_total", kind, outcome, help: "Runs that ended.")
    failures = .counter(
      "reelhaul_task_failures_total", kind, MetricLabel("class", TaskFailure.Class.allCases.map(\.rawValue)),
      help: "Runs that failed, by what that means for their tasks.")
    commands = .counter(
      "reelhaul_commands_total", MetricLabel("command", commandNames), MetricLabel("result", CommandResult.self),
      help: "Commands that were read from Kafka.")
  }

  private func index(of kind: TaskKind) -> Int { kinds[kind.rawValue] ?? otherKind }

  // MARK: Runs

  func ended(_ kind: TaskKind, _ outcome: Outcome, after time: Duration) {
    let kind = index(of: kind)
    settled.add(1, kind, outcome.rawValue)
    run.observe(nanoseconds: time.nanoseconds, kind, outcome.rawValue)
  }

  func failed(_ kind: TaskKind, _ failure: TaskFailure) {
    let number =
      switch failure.class {
      case .retry: 0
      case .fail: 1
      case .wait: 2
      }
    failures.add(1, index(of: kind), number)
  }

  func refused(_ refusal: Refusal) { fencedWrites.add(1, refusal.rawValue) }

  func leaseLost(_ cause: LeaseEnd) { leasesLost.add(1, cause.rawValue) }

  func gaveUpHooks(_ count: Int) { hooksGivenUp.add(count) }

  /// Counts how long tasks were ready before their first start. Others that start are not known to have been ready
  /// since a certain time.
  func published(_ events: PendingEvents) {
    for batch in events.batches where batch.kind == .started {
      for (id, sequence) in batch.events where sequence == Self.firstStart {
        guard let task = events.tasks[id] else { continue }
        let ready = max(task.createdAt.microseconds, task.spec.notBefore?.microseconds ?? 0)
        wait.observe(
          nanoseconds: max(0, batch.at.microseconds - ready) * 1000, queues.index(of: task.spec.queue),
          index(of: task.spec.kind))
      }
    }
  }

  /// The number of the event that follows the one of the submit.
  private static let firstStart = 2

  func clockDiffers(by offset: Duration) { clockOffset.store(offset.microseconds, ordering: .relaxed) }

  // MARK: Commands

  /// These commands are being applied until ``commandsDone()``.
  func read(_ records: [CommandRecord]) {
    oldestCommand.store(records.lazy.map(\.origin.timestamp).filter { $0 > 0 }.min() ?? 0, ordering: .relaxed)
  }

  func commandsDone() { oldestCommand.store(0, ordering: .relaxed) }

  func answered(_ command: Command, _ outcome: CommandOutcome) {
    let result: CommandResult =
      switch outcome {
      case .applied, .intended: .applied
      case .duplicate: .duplicate
      case .refused: .refused
      }
    let name =
      switch command {
      case .submit: "submit"
      case .control(let control): control.action.name
      }
    commands.add(1, commandNames[name] ?? 0, result.rawValue)
  }

  /// The store cannot take the command at all.
  func refused(_ command: Command) { answered(command, .refused(code: "", reason: "")) }

  func unreadable(_ count: Int) {
    if count > 0 { commands.add(count, commandNames.count - 1, CommandResult.deadLetter.rawValue) }
  }

  // MARK: Reading

  func write(to text: inout MetricsSnapshot, now: Int64) {
    text.add(wait, run, settled, failures, claims, settlements, leasesLost, fencedWrites, hooksGivenUp, commands)
    let oldest = oldestCommand.load(ordering: .relaxed)
    text.add(
      "reelhaul_ingest_oldest_age_seconds", oldest == 0 ? 0 : max(0, Double(now - oldest) / 1000),
      help: "How long ago the oldest command was written that is being applied; 0 while there is none.")
    text.add(
      "reelhaul_worker_clock_offset_seconds", Double(clockOffset.load(ordering: .relaxed)) / 1_000_000,
      help: "By how much the clock of this machine is ahead of the database's.")
  }
}
