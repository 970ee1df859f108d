import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  static let probeRoutes = [
    Route(
      method: "GET", path: "/healthz",
      summary: "200 as long as this process answers. It asks neither PostgreSQL nor Kafka.",
      needs: .nothing, medium: "text/plain"
    ) { _, _ in HTTPResponse(type: "text/plain", Array("ok\n".utf8)) },
    Route(
      method: "GET", path: "/readyz", summary: "200 if the state of the fleet can be read.", needs: .nothing,
      answers: [200, 503],
      medium: "text/plain"
    ) { api, _ in
      // Anybody may ask, and as often as they like.
      _ = try await api.snapshots.value("ready", age: .seconds(1)) { [store = api.store] in
        Array((try await store.topicPrefix() ?? "").utf8)
      }
      return HTTPResponse(type: "text/plain", Array("ready\n".utf8))
    },
    Route(
      method: "GET", path: "/metrics", summary: "The fleet's gauges in the text format of Prometheus.", needs: .read,
      answers: [200, 503], medium: "text/plain"
    ) { api, _ in
      HTTPResponse(type: "text/plain; version=0.0.4; charset=utf-8", try await api.metrics())
    },
  ]

  static let robotsRoute = Route(
    method: "GET", path: "/robots.txt", summary: "Nothing here is for search engines.", needs: .nothing,
    medium: "text/plain"
  ) { _, _ in HTTPResponse(type: "text/plain", Array("User-agent: *\nDisallow: /\n".utf8)) }

  static let fleetRoutes = [
    Route(
      method: "GET", path: "/v1/overview",
      summary: "How many tasks are in each state, what moves now, and how many workers are live; at most 2 s old.",
      needs: .read, isPerQueue: true, answers: [200, 503], gives: .overview
    ) { api, call in HTTPResponse(type: json, try await api.overview(for: call.principal)) },
    Route(
      method: "GET", path: "/v1/workers", summary: "The workers and their leases.", needs: .read, answers: [200, 503],
      gives: .object([.must("workers", .list(.worker))])
    ) { api, _ in
      let workers = try await api.store.workers()
      return HTTPResponse(type: json, array("workers", workers, WorkerDocumentJSON.write))
    },
    Route(
      method: "GET", path: "/v1/limits", summary: "Limits, how much of each is used, and the weights of queues.",
      needs: .read,
      answers: [200, 503], gives: .object([.must("limits", .list(.limit))])
    ) { api, _ in
      let limits = try await api.store.limits()
      return HTTPResponse(type: json, array("limits", limits, { $0.write(to: &$1) }))
    },
  ]

  private static func array<Element>(
    _ name: StaticString, _ elements: [Element], _ write: (Element, inout JSONWriter) -> Void
  ) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.name(name)
        json.array { json in
          for element in elements { write(element, &json) }
        }
      }
    }
  }

  /// What the first page shows: of the whole fleet, or of the queues that a principal reaches.
  func overview(for principal: Principal) async throws -> [UInt8] {
    guard let queues = principal.queues else { return try await overview() }
    return try await snapshots.value("overview \(queues.sorted())", age: .seconds(2)) { [store] in
      let gauges = try await store.gauges()
      let workers = try await store.workers().count { $0.isLive }
      let counts = gauges.tasks.mapValues { tasks in
        tasks.reduce(0) { $0 + (queues.contains($1.key.queue) ? $1.value : 0) }
      }
      let today = try await store.settledToday().filter { queues.contains($0.queue) }
      let running = counts[.running] ?? 0
      return Self.encode(
        counts: counts, rate: 0, running: running, workers: workers, today: today, behind: gauges.eventAge,
        unhandled: [])
    }
  }

  private func overview() async throws -> [UInt8] {
    try await snapshots.value("overview", age: .seconds(2)) { [store] in
      let (counts, workers, backlog) = (try await store.counts(), try await store.workers(), try await store.backlog())
      let today = try await store.settledToday()
      let live = workers.filter(\.isLive)
      let handled = live.reduce(into: Set<TaskKind>()) { $0.formUnion($1.kinds) }
      return Self.encode(
        counts: counts, rate: live.reduce(0) { $0 + $1.bytesPerSecond }, running: live.reduce(0) { $0 + $1.running },
        workers: live.count, today: today, behind: backlog.eventAge, unhandled: backlog.kinds.subtracting(handled))
    }
  }

  private static func encode(
    counts: [TaskState: Int], rate: Int64, running: Int, workers: Int, today: [SettledCount], behind: Duration,
    unhandled: Set<TaskKind>
  ) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.name("counts")
        json.object { json in
          for state in TaskState.allCases {
            json.name(state.rawValue)
            json.integer(counts[state] ?? 0)
          }
        }
        json.member("bytesPerSecond", rate)
        json.member("running", running)
        json.member("workers", workers)
        func ended(_ outcome: TaskState) -> Int { today.reduce(0) { $0 + ($1.outcome == outcome ? $1.tasks : 0) } }
        json.member("bytesToday", today.reduce(0) { $0 + $1.bytes })
        json.member("succeededToday", ended(.succeeded))
        json.member("failedToday", ended(.failed))
        json.member("eventsBehindSeconds", Int(behind.components.seconds))
        json.member("kindsWithoutWorker", unhandled.map(\.rawValue).sorted())
      }
    }
  }
}
