import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  /// What the first page shows: of the whole fleet, or of the queues that a principal reaches.
  func overview(for principal: Principal) async throws -> [UInt8] {
    guard let queues = principal.queues else { return try await overview() }
    return try await snapshots.value(.init("overview", of: queues), age: .seconds(2)) { [self] in
      let counts = try await store.taskCounts().reduce(into: [TaskState: Int]()) { counts, count in
        if queues.contains(count.queue) { counts[count.state, default: 0] += count.tasks }
      }
      let live = try await store.workers().count { $0.isLive }
      var overview = Overview(
        counts: counts, running: (counts[.running] ?? 0) + (counts[.publishing] ?? 0), workers: live,
        behind: try await store.backlog().eventAge)
      overview.today = try await store.settledToday().filter { queues.contains($0.queue) }
      overview.failures = try await newestFailures(queues)
      return overview.encoded
    }
  }

  private func overview() async throws -> [UInt8] {
    try await snapshots.value(.init("overview"), age: .seconds(2)) { [self] in
      let (workers, backlog) = (try await store.workers(), try await store.backlog())
      let live = workers.filter(\.isLive)
      var overview = Overview(
        counts: try await store.counts(), running: live.reduce(0) { $0 + $1.running }, workers: live.count,
        behind: backlog.eventAge)
      overview.bytesPerSecond = live.reduce(0) { $0 + $1.bytesPerSecond }
      overview.today = try await store.settledToday()
      overview.stuck = try await held()
      overview.failures = try await newestFailures([])
      overview.kindsWithoutWorker = backlog.kinds.subtracting(
        live.reduce(into: Set<TaskKind>()) { $0.formUnion($1.kinds) })
      return overview.encoded
    }
  }

  /// What holds tasks that do not run, as JSON. It looks at thousands of tasks, so it is read less often than the rest.
  private func held() async throws -> [UInt8] {
    try await snapshots.value(.init("held"), age: .seconds(10)) { [store] in
      let held = try await store.heldTasks().prefix(Self.mostHeld)
      return JSONWriter.write { json in
        json.array { json in
          for held in held {
            json.object { json in
              json.member("reason", StuckReason.word(held))
              json.member("count", held.tasks)
              json.member("isAtLeast", held.isAtLeast)
              json.member("text", StuckReason.sentence(held))
              json.member("query", Self.query(StuckReason.query(held)))
            }
          }
        }
      }
    }
  }

  private func newestFailures(_ queues: Set<String>) async throws -> [UInt8] {
    try await snapshots.value(.init("newest failures", of: queues), age: .seconds(5)) { [store] in
      let failures = try await FailureReport.read(by: nil, queues: queues, limit: 5, from: store)
      return JSONWriter.write { json in
        json.array { json in
          for failure in failures { failure.write(to: &json, mostHosts: 0) }
        }
      }
    }
  }

  private static let mostHeld = 20

  private static func query(_ fields: [(name: String, value: String)]) -> String {
    fields.map { "\($0)=\(PercentEncoding.encode($1.utf8))" }.joined(separator: "&")
  }
}

/// The fleet at a glance.
private struct Overview {
  var counts: [TaskState: Int]
  var running: Int
  var workers: Int
  /// The age of the oldest event that waits to be published.
  var behind: Duration
  /// Nil if it is not known: workers tell it of all their runs together.
  var bytesPerSecond: Int64?
  var today: [SettledCount] = []
  /// JSON arrays.
  var stuck = Array("[]".utf8)
  var failures = Array("[]".utf8)
  var kindsWithoutWorker: Set<TaskKind> = []

  init(counts: [TaskState: Int], running: Int, workers: Int, behind: Duration) {
    self.counts = counts
    self.running = running
    self.workers = workers
    self.behind = behind
  }

  var encoded: [UInt8] {
    func ended(_ outcome: TaskState) -> Int { today.reduce(0) { $0 + ($1.outcome == outcome ? $1.tasks : 0) } }
    return JSONWriter.write { json in
      json.object { json in
        json.name("counts")
        TaskState.write(counts, to: &json)
        json.member("bytesPerSecond", orNull: bytesPerSecond)
        json.member("running", running)
        json.member("workers", workers)
        json.member("bytesToday", today.reduce(0) { $0 + min(max(0, $1.bytes), .max - $0) })
        json.member("succeededToday", ended(.succeeded))
        json.member("failedToday", ended(.failed))
        json.member("eventsBehindSeconds", Int(behind.components.seconds))
        json.member("kindsWithoutWorker", kindsWithoutWorker.map(\.rawValue).sorted())
        json.name("stuck")
        json.raw(stuck)
        json.name("failures")
        json.raw(failures)
      }
    }
  }
}
