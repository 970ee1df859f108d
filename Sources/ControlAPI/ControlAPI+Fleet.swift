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
      summary: "200 as long as this process answers. It asks neither PostgreSQL nor Kafka."
    ) { _, _ in HTTPResponse(type: "text/plain", Array("ok\n".utf8)) },
    Route(
      method: "GET", path: "/readyz", summary: "200 if the state of the fleet can be read.", answers: [200, 503]
    ) { api, _ in
      _ = try await api.store.topicPrefix()
      return HTTPResponse(type: "text/plain", Array("ready\n".utf8))
    },
    Route(
      method: "GET", path: "/metrics", summary: "The fleet's gauges in the text format of Prometheus.",
      answers: [200, 503]
    ) { api, _ in
      HTTPResponse(type: "text/plain; version=0.0.4; charset=utf-8", try await api.metrics())
    },
  ]

  static let fleetRoutes = [
    Route(
      method: "GET", path: "/v1/overview",
      summary: "How many tasks are in each state, what moves now, and how many workers are live; at most 2 s old.",
      answers: [200, 503]
    ) { api, _ in HTTPResponse(type: json, try await api.overview()) },
    Route(method: "GET", path: "/v1/workers", summary: "The workers and their leases.", answers: [200, 503]) { api, _ in
      let workers = try await api.store.workers()
      return HTTPResponse(type: json, array("workers", workers, WorkerDocumentJSON.write))
    },
    Route(
      method: "GET", path: "/v1/limits", summary: "Limits, how much of each is used, and the weights of queues.",
      answers: [200, 503]
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

  /// What the first page shows.
  func overview() async throws -> [UInt8] {
    try await snapshots.value("overview", age: .seconds(2)) { [store] in
      let (counts, workers, backlog) = (try await store.counts(), try await store.workers(), try await store.backlog())
      let today = try await store.settledToday()
      func ended(_ outcome: TaskState) -> Int { today.reduce(0) { $0 + ($1.outcome == outcome ? $1.tasks : 0) } }
      let live = workers.filter(\.isLive)
      return JSONWriter.write { json in
        json.object { json in
          json.name("counts")
          json.object { json in
            for state in TaskState.allCases {
              json.name(state.rawValue)
              json.integer(counts[state] ?? 0)
            }
          }
          json.member("bytesPerSecond", live.reduce(0) { $0 + $1.bytesPerSecond })
          json.member("running", live.reduce(0) { $0 + $1.running })
          json.member("workers", live.count)
          json.member("bytesToday", today.reduce(0) { $0 + $1.bytes })
          json.member("succeededToday", ended(.succeeded))
          json.member("failedToday", ended(.failed))
          json.member("eventsBehindSeconds", Int(backlog.eventAge.components.seconds))
          let handled = live.reduce(into: Set<TaskKind>()) { $0.formUnion($1.kinds) }
          json.member("kindsWithoutWorker", backlog.kinds.subtracting(handled).map(\.rawValue).sorted())
        }
      }
    }
  }
}
