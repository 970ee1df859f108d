import ReelhaulMessages
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import WorkerCore

/// What a worker counts of its runs, its lease and its commands.
@Suite struct WorkerMetricsTests {
  private func metrics(_ bench: WorkerBench) async throws -> PrometheusText {
    let text = try await bench.loop.task { await bench.worker.metricsSnapshot() }.value
    return try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
  }

  private func outcomes(_ text: PrometheusText) -> [String: Double] {
    Dictionary(
      uniqueKeysWithValues: ["succeeded", "failed", "canceled", "retried", "handed_back", "lost"].map {
        ($0, text.value("reelhaul_tasks_settled_total", ["kind": "download", "outcome": $0]))
      }
    ).filter { $0.value > 0 }
  }

  @Test("each run is counted once, by what became of it, and each failure by its class")
  func runs() async throws {
    let bench = try WorkerBench()
    func failed(_ failure: TaskFailure.Class) -> RunOutcome {
      .failed(TaskFailure(code: .http(500), message: "no", class: failure))
    }
    try await bench.run {
      let endings: [RunOutcome] = [.succeeded(sha256: nil, bytes: 5), failed(.fail), failed(.wait), failed(.retry)]
      for ending in endings {
        var spec = download()
        spec.retry = RetryPolicy(maxAttempts: 2, intervals: [3600])
        bench.submit([spec])
        bench.handler.end(spec.id, with: ending)
      }
      let (canceled, drained) = (download(), download())
      bench.submit([canceled, drained])
      try await eventually("both run") {
        bench.handler.ledger(canceled.id) != nil && bench.handler.ledger(drained.id) != nil
      }
      let meanwhile = try await metrics(bench)
      #expect(meanwhile.value("reelhaul_worker_busy") >= 2)
      bench.control(.cancel, canceled.id)
      try await eventually("it is canceled") { try await bench.state(canceled.id) == .canceled }
      try await eventually("all others have ended") { try await metrics(bench).value("reelhaul_worker_busy") == 1 }
      bench.control(.pause, drained.id)
      try await eventually("it is paused") { try await bench.state(drained.id) == .paused }
      try await eventually("nothing runs") { try await metrics(bench).value("reelhaul_worker_busy") == 0 }

      let text = try await metrics(bench)
      #expect(
        outcomes(text) == ["succeeded": 1, "failed": 1, "handed_back": 2, "retried": 1, "canceled": 1])
      for name in ["fail", "wait", "retry"] {
        #expect(text.value("reelhaul_task_failures_total", ["kind": "download", "class": name]) == 1, "\(name)")
      }
      #expect(text.value("reelhaul_task_run_seconds", ["kind": "download", "outcome": "canceled"]) == 1)
      // The publication of the first start may come later.
      try await eventually("all waits are counted") {
        try await metrics(bench).value("reelhaul_task_wait_seconds", ["queue": "default", "kind": "download"]) == 6
      }
    }
  }

  @Test(
    "a run that does not stop ends like one that does: its progress counts, and the metric tells what was written",
    arguments: [(2 << 20, TaskState.queued, "retried"), (0, .failed, "failed")])
  func detachedRun(bytes: Int64, state: TaskState, outcome: String) async throws {
    let bench = try WorkerBench {
      $0.watchdog = Watchdog(patience: .seconds(5), grace: .milliseconds(100))
    }
    var spec = download()
    spec.retry = RetryPolicy(maxAttempts: 1, intervals: [3600])
    try await bench.run {
      bench.handler.hang()
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      try await bench.handler.ledger(spec.id)?.checkpoint(Checkpoint(bytesDone: bytes, bytesTotal: 1 << 30))
      try await eventually("its task is handed back") { try await outcomes(metrics(bench)) == [outcome: 1] }
      let task = try await bench.store.task(spec.id)
      #expect(task?.state == state && task?.error?.code == .stalled)
    }
    bench.handler.end(spec.id, with: .stopped)
  }

  @Test("a canceled run that does not stop is counted as canceled") func detachedAndCanceled() async throws {
    let bench = try WorkerBench {
      $0.watchdog = Watchdog(patience: .seconds(600), grace: .milliseconds(100))
    }
    let spec = download()
    try await bench.run {
      bench.handler.hang()
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.control(.cancel, spec.id)
      try await eventually("it is canceled") { try await outcomes(metrics(bench)) == ["canceled": 1] }
    }
    bench.handler.end(spec.id, with: .stopped)
  }

  @Test("a lost lease and the writes that it forbids are counted, and its run is lost")
  func lostLease() async throws {
    let bench = try WorkerBench { $0.leaseSeconds = 9 }
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.handler.hang()
      bench.store.setAway(true)
      try await eventually("the lease is lost") {
        try await metrics(bench).value("reelhaul_leases_lost_total", ["cause": "expired"]) == 1
      }
      bench.store.setAway(false)
      bench.handler.end(spec.id, with: .succeeded(sha256: nil, bytes: 1))
      try await eventually("its run is lost") { outcomes(try await metrics(bench))["lost"] == 1 }
      bench.control(.cancel, spec.id)
      bench.handler.end(spec.id, with: .stopped)
      try await eventually("it is canceled") { try await bench.state(spec.id) == .canceled }
      #expect(outcomes(try await metrics(bench))["succeeded"] == nil)
    }
  }

  @Test("a write that the store or the worker itself refuses is counted, with what refused it")
  func fencedWrites() async throws {
    let loop = EventLoop(name: "metrics-test")
    let metrics = WorkerMetrics(kinds: [])
    let batcher = StoreBatcher(store: TestStore(), loop: loop, metrics: metrics, log: quietLog)
    let fence = Fence(until: .now + .seconds(3600))
    let lease = Lease(worker: WorkerID(rawValue: 1), boot: .random(), fence: fence)
    let end = Settlement(taskID: .random(), epoch: 1, outcome: .released(reason: nil, delay: .zero))
    let write = CheckpointWrite(taskID: end.taskID, epoch: 1, checkpoint: Checkpoint(bytesDone: 1))
    // The store knows no such run.
    #expect(try await !batcher.settle(end, under: lease))
    await #expect(throws: OwnershipLost.self) { try await batcher.checkpoint(write, under: lease) }
    fence.close()
    await #expect(throws: OwnershipLost.self) { try await batcher.settle(end, under: lease) }
    var text = MetricsSnapshot()
    metrics.write(to: &text, now: 0)
    let read = try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
    #expect(read.value("reelhaul_fenced_writes_total", ["cause": "epoch"]) == 2)
    #expect(read.value("reelhaul_fenced_writes_total", ["cause": "lease"]) == 1)
    #expect(read.value("reelhaul_settle_seconds") == 1)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("commands are counted by what became of them") func commands() async throws {
    let bench = try WorkerBench()
    let (good, poison) = (noop(), noop())
    bench.store.poison(poison.id)
    try await bench.run {
      bench.submit([good, good])
      try await eventually("it is done") { try await bench.state(good.id) == .succeeded }
      bench.commands.send([CommandJSON.encode(.submit(poison)), Array("not json".utf8), Array("{}".utf8)])
      bench.control(.pause, UniqueID(high: 7, low: 7))
      try await eventually("all are committed") { bench.commands.committed.count == 6 }
      let text = try await metrics(bench)
      func count(_ command: String, _ result: String) -> Double {
        text.value("reelhaul_commands_total", ["command": command, "result": result])
      }
      #expect(count("submit", "applied") == 1 && count("submit", "duplicate") == 1 && count("submit", "refused") == 1)
      #expect(count("pause", "refused") == 1 && count("unreadable", "dead_letter") == 2)
      #expect(text.families["reelhaul_commands_total"]?.series.reduce(0) { $0 + $1.value } == 6)
      #expect(text.value("reelhaul_ingest_oldest_age_seconds") == 0)
    }
  }

  @Test("how long a task waited begins when it was not to wait any more") func waits() throws {
    let metrics = WorkerMetrics(kinds: [.noop])
    var spec = TaskSpec(id: .random(), kind: .noop, source: "noop:")
    spec.notBefore = Timestamp(microseconds: 3600_000_000)
    let task = TaskDocument(spec: spec, state: .running, createdAt: Timestamp(microseconds: 0))
    let started = OutboxBatch(
      row: 1, kind: .started, at: Timestamp(microseconds: 3602_000_000), events: [(spec.id, 2)])
    metrics.published(PendingEvents(batches: [started], tasks: [spec.id: task]))
    var text = MetricsSnapshot()
    metrics.write(to: &text, now: 0)
    let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n")
    let sum = lines.first { $0.hasPrefix("reelhaul_task_wait_seconds_sum") && !$0.hasSuffix(" 0") }
    #expect(sum?.hasSuffix(" 2") == true, "\(sum ?? "none")")
  }
}
