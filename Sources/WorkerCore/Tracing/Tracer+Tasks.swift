import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// The spans of tasks. Each task has one for its whole life, which is a part of the span in which it was submitted; the
/// submit and every run are parts of it.
extension Tracer {
  /// Commands were applied; those of tasks that are submitted get a span.
  func submitted(_ commands: [Command], _ outcomes: [CommandOutcome], since begin: Timestamp) {
    let end = Timestamp(microseconds: Clocks.realtimeMicroseconds())
    for (command, outcome) in zip(commands, outcomes) {
      guard case .submit(let spec) = command else { continue }
      let life = life(of: spec)
      record(
        Span(
          life.child(), parent: life.spanID, name: "submit", kind: .consumer, start: begin, end: end,
          attributes: Self.attributes(of: spec) + [
            ("messaging.system", "kafka"), ("reelhaul.outcome", .text(Self.name(of: outcome))),
          ],
          error: Self.refusal(outcome)),
        of: life)
    }
  }

  /// A run has ended after `time`.
  func ran(_ ledger: RunLedger, _ outcome: WorkerMetrics.Outcome, _ failure: TaskFailure?, for time: Duration) {
    guard let trace = ledger.trace else { return }
    let claim = ledger.claim
    let end = Clocks.realtimeMicroseconds()
    record(
      Span(
        trace, parent: life(of: claim.spec).spanID, name: "run \(claim.spec.kind.rawValue)", kind: .consumer,
        start: Timestamp(microseconds: end - time.microseconds), end: Timestamp(microseconds: end),
        attributes: Self.attributes(of: claim.spec) + [
          ("reelhaul.attempt", .integer(claim.attempt)), ("reelhaul.epoch", .integer(claim.epoch)),
          ("reelhaul.outcome", .text(MetricLabel.spelled("\(outcome)"))),
          ("reelhaul.bytes", .integer(ledger.bytesDone)),
        ] + Self.attributes(of: failure),
        error: failure?.message),
      of: trace)
  }

  /// Events were published; tasks that have ended get their span.
  func published(_ round: PendingEvents) {
    for batch in round.batches {
      switch batch.kind {
      case .succeeded, .failed, .canceled: break
      default: continue
      }
      for (id, _) in batch.events {
        guard let task = round.tasks[id] else { continue }
        let life = life(of: task.spec)
        // It may have been tried again since.
        let error = batch.kind == .failed ? task.error : nil
        record(
          Span(
            life, parent: task.spec.trace?.spanID, name: "task \(task.spec.kind.rawValue)", start: task.createdAt,
            end: batch.at,
            attributes: Self.attributes(of: task.spec) + [
              ("reelhaul.attempts", .integer(task.attempt)), ("reelhaul.outcome", .text(batch.kind.rawValue)),
              ("reelhaul.bytes", .integer(task.bytesDone)),
            ] + Self.attributes(of: error),
            error: batch.kind == .failed ? task.error?.message ?? "failed" : nil),
          of: life)
      }
    }
  }

  private static func attributes(of spec: TaskSpec) -> [(String, LogValue)] {
    [
      ("reelhaul.task.id", .of(spec.id)), ("reelhaul.task.kind", .text(spec.kind.rawValue)),
      ("reelhaul.queue", .text(spec.queue)),
    ]
  }

  private static func attributes(of failure: TaskFailure?) -> [(String, LogValue)] {
    failure.map { [("error.type", .text($0.code.rawValue))] } ?? []
  }

  private static func name(of outcome: CommandOutcome) -> String {
    switch outcome {
    case .applied, .intended: "applied"
    case .duplicate: "duplicate"
    case .refused: "refused"
    }
  }

  private static func refusal(_ outcome: CommandOutcome) -> String? {
    if case .refused(_, let reason) = outcome { reason } else { nil }
  }
}
