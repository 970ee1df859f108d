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
      method: "GET", path: "/readyz",
      summary: "200 if the state of the fleet can be read, and the schema of the database is this program's.",
      needs: .nothing,
      answers: [200, 503],
      medium: "text/plain"
    ) { api, _ in
      // Anybody may ask, and as often as they like. A probe does not wait long.
      let ready = try await api.loop.within(.seconds(3)) {
        try await api.snapshots.value(.init("ready"), age: .seconds(1)) { [readiness = api.readiness] in
          try await readiness.check()
          return []
        }
      }
      guard ready != nil else { throw HTTPError(503, "PostgreSQL does not answer") }
      return HTTPResponse(type: "text/plain", Array("ready\n".utf8))
    },
    Route(
      method: "GET", path: "/metrics",
      summary: """
        The fleet's gauges in the text format of Prometheus. If they cannot be read within 5 s, `reelhaul_fleet_readable` is 0, \
        and only what this process knows by itself is there.
        """, needs: .read,
      medium: "text/plain"
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
}
