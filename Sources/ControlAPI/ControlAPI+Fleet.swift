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

  static func array<Element>(
    _ name: StaticString, _ elements: [Element], hasMore: Bool? = nil, _ write: (Element, inout JSONWriter) -> Void
  ) -> [UInt8] {
    JSONWriter.write(capacity: 4096) { json in
      json.object { json in
        json.name(name)
        json.array { json in
          for element in elements { write(element, &json) }
        }
        if let hasMore { json.member("hasMore", hasMore) }
      }
    }
  }

  /// What the first page shows.
  func overview() async throws -> [UInt8] {
    try await snapshots.value("overview", age: .seconds(2)) { [self] in
      let (counts, workers, backlog) = (try await store.counts(), try await store.workers(), try await store.backlog())
      let (today, held) = (try await store.settledToday(), try await self.held())
      let failures = try await newestFailures()
      func ended(_ outcome: TaskState) -> Int { today.reduce(0) { $0 + ($1.outcome == outcome ? $1.tasks : 0) } }
      let live = workers.filter(\.isLive)
      return JSONWriter.write { json in
        json.object { json in
          json.name("counts")
          TaskState.write(counts, to: &json)
          json.member("bytesPerSecond", live.reduce(0) { $0 + $1.bytesPerSecond })
          json.member("running", live.reduce(0) { $0 + $1.running })
          json.member("workers", live.count)
          json.member("bytesToday", today.reduce(0) { $0 + $1.bytes })
          json.member("succeededToday", ended(.succeeded))
          json.member("failedToday", ended(.failed))
          json.member("eventsBehindSeconds", Int(backlog.eventAge.components.seconds))
          json.name("stuck")
          json.raw(held)
          json.name("failures")
          json.raw(failures)
          let handled = live.reduce(into: Set<TaskKind>()) { $0.formUnion($1.kinds) }
          json.member("kindsWithoutWorker", backlog.kinds.subtracting(handled).map(\.rawValue).sorted())
        }
      }
    }
  }

  /// What holds tasks that do not run. It looks at thousands of tasks, so it is read less often than the rest.
  private func held() async throws -> [UInt8] {
    try await snapshots.value("held", age: .seconds(10)) { [store] in
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

  private func newestFailures() async throws -> [UInt8] {
    try await snapshots.value("newest failures", age: .seconds(5)) { [store] in
      let failures = try await FailureReport.read(limit: 5, from: store)
      return JSONWriter.write { json in
        json.array { json in
          for failure in failures { failure.write(to: &json) }
        }
      }
    }
  }

  private static let mostHeld = 20

  private static func query(_ fields: [(name: String, value: String)]) -> String {
    fields.map { field in
      let value = field.value.utf8.map { byte in
        switch UInt8(byte) {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          String(UnicodeScalar(byte))
        default: "%" + Hex.encode([byte]).uppercased()
        }
      }
      return "\(field.name)=\(value.joined())"
    }.joined(separator: "&")
  }
}
