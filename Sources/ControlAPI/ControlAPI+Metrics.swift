import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

extension ControlAPI {
  /// A scraper waits for some seconds only, and shall get at least what this process knows by itself.
  private static let patience = Duration.seconds(5)

  /// The metrics of the whole fleet, which only one process may tell, or sums would be wrong. Every scraper gets what is
  /// at most 5 s old.
  func metrics() async throws -> [UInt8] {
    let fleet = try await readable {
      try await snapshots.value(.init("metrics"), age: .seconds(5)) { try await fleetMetrics().bytes }
    }
    var own = MetricsSnapshot()
    addOwn(to: &own, isReadable: fleet != nil)
    return (fleet ?? []) + own.bytes
  }

  /// The same as values, as of now.
  package func metricsSnapshot() async throws -> MetricsSnapshot {
    let read = SharedValue { try await fleetMetrics() }
    let fleet = try await readable { try await read.value }
    var snapshot = fleet ?? MetricsSnapshot()
    addOwn(to: &snapshot, isReadable: fleet != nil)
    return snapshot
  }

  private func addOwn(to snapshot: inout MetricsSnapshot, isReadable: Bool) {
    snapshot.add(
      "reelhaul_fleet_readable", isReadable ? 1 : 0,
      help: "1 if the gauges of the fleet could be read from PostgreSQL in time; otherwise 0, and they are missing.")
    snapshot.addBuild(version: version, schema: Schema.version)
    snapshot.addProcess()
  }

  /// What `read` returns; nil if it fails or takes too long, which the log tells.
  private func readable<Value: Sendable>(_ read: @escaping @Sendable () async throws -> Value) async throws -> Value? {
    var cause = "PostgreSQL did not answer within \(Self.patience)"
    do {
      if let value = try await loop.within(Self.patience, read) { return value }
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      cause = "\(error)"
    }
    log?.warning("the gauges of the fleet cannot be read", ["error": .text(cause)])
    return nil
  }

  private func fleetMetrics() async throws -> MetricsSnapshot {
    let (gauges, workers) = (try await store.gauges(), try await store.workers())
    var snapshot = MetricsSnapshot()
    snapshot.add(gauges)
    snapshot.add("reelhaul_workers", Double(workers.count { $0.isLive }), help: "Workers whose lease holds.")
    return snapshot
  }
}

extension MetricsSnapshot {
  fileprivate mutating func add(_ gauges: FleetGauges) {
    let queues = QueueNames(gauges)
    var oldest = gauges.oldestRunnable.reduce(into: [:]) { ages, entry in
      ages[[queues[entry.key]], default: 0] = max(ages[[queues[entry.key]]] ?? 0, entry.value.seconds)
    }
    for key in gauges.tasks.values.flatMap(\.keys) { oldest[[queues[key.queue]], default: 0] += 0 }
    add(
      "reelhaul_tasks", ["state", "queue", "kind"],
      "Tasks that have not succeeded.",
      gauges.tasks.reduce(into: [:]) { counts, state in
        for (key, count) in state.value {
          counts[[state.key.rawValue, queues[key.queue], key.kind.rawValue], default: 0] += Double(count)
        }
      })
    add(
      "reelhaul_tasks_runnable", ["queue", "kind"],
      "Tasks that a worker with a free place would start now; at most \(FleetGauges.limit) of each.",
      gauges.runnable.reduce(into: [:]) {
        $0[[queues[$1.key.queue], $1.key.kind.rawValue], default: 0] += Double($1.value)
      })
    add(
      "reelhaul_tasks_held", ["reason"], "Tasks that wait and cannot start now, by what holds them.",
      FleetGauges.Hold.allCases.reduce(into: [:]) { $0[[$1.rawValue]] = Double(gauges.held[$1] ?? 0) })
    add(
      "reelhaul_oldest_runnable_age_seconds", ["queue"], "How long the oldest runnable task of a queue has been ready.",
      oldest)
    add("reelhaul_outbox_events", Double(gauges.events), help: "Events that wait to be published.")
    add(
      "reelhaul_outbox_oldest_age_seconds", gauges.eventAge.seconds,
      help: "How long the oldest event has waited to be published.")
    add(
      "reelhaul_hooks_waiting", Double(gauges.hooks),
      help: "Events that wait to be delivered to web hooks; of each host at most \(FleetGauges.limit).")
    add(
      "reelhaul_hook_oldest_age_seconds", gauges.hookAge.seconds,
      help: "How long the oldest of them has waited.")
  }

  private mutating func add(_ name: String, _ labels: [String], _ help: String, _ values: [[String]: Double]) {
    add(
      MetricFamily(name, .gauge, labels: labels, help: help),
      values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, $0.value) })
  }
}

/// The queues that have series of their own: those with the most tasks. There may be one for each customer.
private struct QueueNames {
  private static let limit = 100
  private let named: Set<String>

  init(_ gauges: FleetGauges) {
    var sizes: [String: Int] = [:]
    for (key, count) in gauges.tasks.values.joined() { sizes[key.queue, default: 0] += count }
    named = Set(sizes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(Self.limit).map(\.key))
  }

  subscript(queue: String) -> String { named.contains(queue) ? queue : MetricNames.other }
}
