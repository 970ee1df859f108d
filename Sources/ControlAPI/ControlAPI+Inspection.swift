import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  /// What operators ask about the fleet as a whole.
  static let inspectionRoutes = [
    Route(
      method: "GET", path: "/v1/counts",
      summary:
        "How many tasks there are by state, queue or kind, or by all three. The counts are maintained, and exact.",
      needs: .read, isPerQueue: true,
      query: [
        Route.Field(
          name: "by", help: "What to count by; without it by all three.",
          schema: .text(values: CountKey.allCases.map(\.rawValue)))
      ], gives: .object([.must("counts", .list(.taskCount))])
    ) { api, call in
      let key = call.query["by"].flatMap(CountKey.init)
      return HTTPResponse(type: json, try await api.counts(by: key, of: call.principal.queues))
    },
    Route(
      method: "GET", path: "/v1/failures",
      summary: """
        The failed tasks by error and host, or by error alone, the group that failed last first, with an example of each \
        and what to do about it. Looks at the newest 5,000 failed tasks: `isAtLeast` says that there are more.
        """,
      needs: .read, isPerQueue: true,
      query: [
        TaskListQuery.queues,
        Route.Field(
          name: "by", help: "What a group has in common: the error and the host (as without it), or the error alone.",
          schema: .text(values: FailureReport.Key.allCases.map(\.rawValue))),
      ],
      gives: .object([.must("failures", .list(.failure))])
    ) { api, call in
      let asked = Set(TaskListQuery.words(call.query, "queue"))
      let queues = call.principal.reachable(of: asked.isEmpty ? nil : asked)
      let key = call.query["by"].flatMap(FailureReport.Key.init) ?? .host
      return HTTPResponse(type: json, try await api.failures(by: key, queues))
    },
    Route(
      method: "GET", path: "/v1/queues",
      summary: """
        The queues that have tasks, a weight or a limit: how many tasks are in each state, and how long the oldest that could \
        run has waited. At most 1,000, those with the most unfinished tasks; `hasMore` says that there are others.
        """,
      needs: .read, isPerQueue: true, gives: .object([.must("queues", .list(.queueUse)), .must("hasMore", .flag())])
    ) { api, call in HTTPResponse(type: json, try await api.queues(call.principal.queues)) },
    Route(
      method: "GET", path: "/v1/hosts",
      summary: """
        The remote hosts that have waiting, running or failed tasks or a limit; at most 1,000, those with the most tasks. \
        `waiting` and `failed` count what a look at some thousands of tasks finds.
        """,
      needs: .read, gives: .object([.must("hosts", .list(.hostUse)), .must("hasMore", .flag())])
    ) { api, _ in HTTPResponse(type: json, try await api.hosts()) },
    Route(
      method: "GET", path: "/v1/storages",
      summary: """
        The storages that live workers have: their free space, what of it files under way will need, and their size, all \
        about a minute old at most; null while no worker has told them.
        """,
      needs: .read, gives: .object([.must("storages", .list(.storageUse))])
    ) { api, _ in
      let storages = try await api.store.storages()
      return HTTPResponse(type: json, array("storages", storages, { $0.write(to: &$1) }))
    },
    Route(
      method: "GET", path: "/v1/samples",
      summary: """
        How the fleet was over time, in steps that begin at multiples of `step`: tasks by state, bytes per second, and how \
        many tasks succeeded, failed and were canceled in each step. Samples are taken every 10 s; after a day one a minute \
        is kept, after three days one in 10 minutes, and none after 14 days. Steps without a sample are left out.
        """,
      needs: .read,
      query: [
        Route.Field(
          name: "from", help: "The time of the first step; an hour before `to` if it is not given.", schema: .time),
        Route.Field(name: "to", help: "The time before which the steps end; now if it is not given.", schema: .time),
        Route.Field(
          name: "step",
          help: "The length of a step in seconds; without it, so long that there are about 300.",
          schema: .integer("", 10...86_400)),
      ], answers: [200, 422], gives: .samples
    ) { api, call in HTTPResponse(type: json, try await api.samples(call.query)) },
  ]

  enum CountKey: String, CaseIterable {
    case state, queue, kind
  }

  private func counts(by key: CountKey?, of queues: Set<String>?) async throws -> [UInt8] {
    try await snapshots.value(.init("counts \(key?.rawValue ?? "")", of: queues), age: .seconds(1)) { [store] in
      let counts = try await store.taskCounts().filter { queues?.contains($0.queue) != false }
      return Self.array("counts", key.map { $0.group(counts) } ?? counts.map { (fields: $0.fields, tasks: $0.tasks) }) {
        group, json in
        json.object { json in
          for field in group.fields {
            json.name(field.name)
            json.string(field.value)
          }
          json.member("count", group.tasks)
        }
      }
    }
  }

  /// Nil: of all queues.
  private func failures(by key: FailureReport.Key, _ queues: Set<String>?) async throws -> [UInt8] {
    try await snapshots.value(.init("failures \(key)", of: queues), age: .seconds(5)) { [store] in
      // To the store, no queue means all queues.
      let reports =
        queues?.isEmpty == true ? [] : try await FailureReport.read(by: key, queues: queues ?? [], from: store)
      return Self.array("failures", reports) { $0.write(to: &$1) }
    }
  }

  private func hosts() async throws -> [UInt8] {
    try await snapshots.value(.init("hosts"), age: .seconds(5)) { [store] in
      var hosts = Dictionary(try await store.hosts().map { ($0.host, $0) }) { $1 }
      var failed: [String: Int] = [:]
      for group in try await store.failures(queues: []) where !group.host.isEmpty {
        failed[group.host, default: 0] += group.tasks
        hosts[group.host] =
          hosts[group.host] ?? HostUse(host: group.host, waiting: 0, running: 0, limit: nil, bytesPerSecond: 0)
      }
      let sizes = hosts.mapValues { $0.waiting + $0.running + (failed[$0.host] ?? 0) }
      let shown = hosts.values.sorted { (sizes[$1.host] ?? 0, $0.host) < (sizes[$0.host] ?? 0, $1.host) }.prefix(
        Self.mostGroups)
      return Self.array("hosts", Array(shown), hasMore: hosts.count > shown.count) { host, json in
        json.object { json in
          json.member("host", host.host)
          json.member("waiting", host.waiting)
          json.member("running", host.running)
          json.member("failed", failed[host.host] ?? 0)
          json.member("limit", orNull: host.limit.map(Int64.init))
          json.member("bytesPerSecond", host.bytesPerSecond)
        }
      }
    }
  }

  private func queues(_ queues: Set<String>?) async throws -> [UInt8] {
    try await snapshots.value(.init("queues", of: queues), age: .seconds(2)) { [store] in
      let reports = QueueReport.of(
        try await store.taskCounts(), limits: try await store.limits(), oldest: try await store.oldestRunnable()
      ).filter { queues?.contains($0.queue) != false }
      return Self.array("queues", Array(reports.prefix(Self.mostGroups)), hasMore: reports.count > Self.mostGroups) {
        $0.write(to: &$1)
      }
    }
  }

  private func samples(_ query: [String: String]) async throws -> [UInt8] {
    let now = Timestamp(microseconds: Clocks.realtimeMicroseconds())
    let end = TaskListQuery.time(query, "to") ?? now
    let start = TaskListQuery.time(query, "from") ?? Timestamp(microseconds: end.microseconds - 3_600_000_000)
    let seconds = (end.microseconds - start.microseconds) / 1_000_000
    guard seconds > 0 else { throw HTTPError(422, "\"from\" must be before \"to\"") }
    let step: Int
    if let given = query["step"].flatMap({ Int($0) }) {
      step = given
    } else {
      step = Self.steps.first { seconds / Int64($0) <= 300 } ?? 86_400
    }
    guard seconds / Int64(step) <= Self.mostSamples else {
      throw HTTPError(422, "there would be more than \(Self.mostSamples) steps: ask for less time or longer steps")
    }
    let samples = try await store.samples(from: start, to: end, step: step)
    return JSONWriter.write(capacity: samples.count * 256) { json in
      json.object { json in
        json.member("step", step)
        json.name("samples")
        json.array { json in
          for sample in samples { sample.write(to: &json) }
        }
      }
    }
  }

  private static let mostGroups = 1000
  private static let mostSamples: Int64 = 10_000
  private static let steps = [10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400]
}

extension ControlAPI.CountKey {
  fileprivate func group(_ counts: [TaskCount]) -> [(fields: [(name: String, value: String)], tasks: Int)] {
    let sums = counts.reduce(into: [String: Int]()) { sums, count in
      let word =
        switch self {
        case .state: count.state.rawValue
        case .queue: count.queue
        case .kind: count.kind.rawValue
        }
      sums[word, default: 0] += count.tasks
    }
    return sums.sorted { $0.key < $1.key }.map { ([(rawValue, $0.key)], $0.value) }
  }
}

extension TaskCount {
  fileprivate var fields: [(name: String, value: String)] {
    [("state", state.rawValue), ("queue", queue), ("kind", kind.rawValue)]
  }
}

extension StorageUse {
  fileprivate func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("storage", storage)
      json.member("freeBytes", orNull: space?.free)
      json.member("promisedBytes", orNull: space?.promised)
      json.member("totalBytes", orNull: space?.total)
      json.member("workers", workers)
    }
  }
}

extension FleetSample {
  fileprivate func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("at", at)
      json.name("counts")
      TaskState.write(counts, to: &json)
      json.member("bytesPerSecond", bytesPerSecond)
      for state in [TaskState.succeeded, .failed, .canceled] {
        json.name(state.rawValue)
        json.integer(ended[state] ?? 0)
      }
    }
  }
}

extension TaskState {
  /// An object with every state.
  static func write(_ counts: [TaskState: Int], to json: inout JSONWriter) {
    json.object { json in
      for state in allCases {
        json.name(state.rawValue)
        json.integer(counts[state] ?? 0)
      }
    }
  }
}
