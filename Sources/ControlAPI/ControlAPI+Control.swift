import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore

/// What operators set, and workers that shall end.
extension ControlAPI {
  static let controlRoutes = [
    limitRoute("/v1/limits/{scope}"),
    limitRoute("/v1/limits/{scope}/{name}"),
    Route(
      method: "PUT", path: "/v1/queues/{name}",
      summary: """
        Sets a queue's `weight`, its share among queues with tasks of equal priority (null: 1), and its `limit`: how many of its \
        tasks may run at once, null for any number, 0 to pause the queue. What is not named stays.
        """,
      needs: .admin, accepts: [json], takes: .queueBody, example: #"{"weight": 2, "limit": null}"#,
      answers: [200, 422],
      gives: .limit
    ) { api, call in
      let name = try name(call.path["name"] ?? "", of: .queue)
      var (weight, limit): (Double?, Int??) = (nil, nil)
      try call.readBody(["weight", "limit"], withNulls: true) { reader, name throws(DecodingFailure) in
        switch name {
        case "weight": weight = try reader.null() ? 1 : try Self.number(&reader)
        case "limit": limit = .some(try reader.null() ? nil : try reader.integer(LimitUse.limits))
        default: try reader.skip()
        }
      }
      return try await api.limit(LimitUse(scope: .queue, name: name, weight: 1)) { [weight, limit] store in
        if let weight { try await store.setWeight(queue: name, to: weight) }
        if let limit { try await store.setLimit(.queue, name: name, to: limit) }
      }
    },
    Route(
      method: "POST", path: "/v1/workers/{id}/actions/drain",
      summary: """
        Asks a worker to end as on SIGTERM: it takes no new tasks, records its progress and hands its tasks back. Its \
        next renewal of the lease, within half a second, tells it.
        """,
      needs: .admin, segments: ["id": .id], accepts: [json], takes: .object([], isOpen: false), example: "{}",
      answers: [202, 404, 422],
      gives: .object([
        .must("worker", .id), .must("state", .text(values: ["draining"])),
        .may("remark", .text("If the worker's version is so old that it may not know the request: what to do.")),
      ])
    ) { api, call in
      let id = try call.id
      try call.readBody([]) { reader, _ throws(DecodingFailure) in try reader.skip() }
      guard try await api.store.drain(id) else { throw HTTPError(404, "there is no live worker \(id)") }
      let mayNotDrain = try await api.store.workers().first { $0.id == id }?.mayNotDrain ?? false
      return HTTPResponse(
        202, type: json,
        JSONWriter.write { json in
          json.object { json in
            json.member("worker", id)
            json.member("state", "draining")
            if mayNotDrain {
              json.member(
                "remark",
                "the worker is of an earlier version and may not know the request: send SIGTERM to its process")
            }
          }
        })
    },
  ]

  private static func limitRoute(_ path: String) -> Route {
    let isNamed = path.hasSuffix("{name}")
    return Route(
      method: "PUT", path: path,
      summary: isNamed
        ? """
        Sets how many tasks of a kind, queue, host or storage may run at once: `limit`, or null to take that away; what a \
        kind's handler declares, or the workers learned of a host, then applies again.
        """
        : "Sets how many tasks of the whole fleet (`total`) may run at once: `limit`, or null for any number.",
      needs: .admin,
      accepts: [json], takes: .limitBody, example: #"{"limit": 4}"#, answers: [200, 404, 422], gives: .limit
    ) { api, call in
      let word = call.path["scope"] ?? ""
      guard let scope = LimitScope(rawValue: word), isNamed == (scope != .total) else {
        throw HTTPError(404, "there is no limit at \(call.request.path.prefix(200))")
      }
      let name = try name(call.path["name"] ?? "", of: scope)
      var limit: Int??
      try call.readBody(["limit"], withNulls: true) { reader, _ throws(DecodingFailure) in
        limit = .some(try reader.null() ? nil : try reader.integer(LimitUse.limits))
      }
      guard let limit else { throw HTTPError.missing("limit", "a whole number, or null for no limit") }
      return try await api.limit(LimitUse(scope: scope, name: name)) { store in
        try await store.setLimit(scope, name: name, to: limit)
      }
    }
  }

  private static func name(_ text: String, of scope: LimitScope) throws(HTTPError) -> String {
    do throws(InvalidLimit) {
      return try scope.checked(text)
    } catch {
      throw HTTPError(422, error.message)
    }
  }

  private static func number(_ reader: inout JSONReader) throws(DecodingFailure) -> Double {
    let text = String(decoding: try reader.raw(), as: UTF8.self)
    guard let number = Double(text), LimitUse.weights.contains(number) else {
      throw reader.invalid("expected a number from \(LimitUse.weights.lowerBound) to 1000")
    }
    return number
  }

  /// The limit as it is after the change; `plain` if nothing is set and nothing runs.
  private func limit(
    _ plain: LimitUse, after change: (any LimitStore) async throws -> Void
  ) async throws -> HTTPResponse {
    try await readiness.checkBeforeChange()
    try await change(store)
    await snapshots.forget(["queues", "hosts"])
    let use = try await store.limits().first { $0.isOf(plain.scope, plain.name) } ?? plain
    return HTTPResponse(type: Self.json, JSONWriter.write { use.write(to: &$0) })
  }
}

extension JSONSchema {
  private static let newLimit = integer("Null takes the limit away.", 0...1_000_000).orNull

  static let limitBody = named("LimitBody", .object([.must("limit", newLimit)], isOpen: false))

  static let queueBody = named(
    "QueueBody",
    .object([.may("weight", number("From 0.001 to 1000.").orNull), .may("limit", newLimit)], isOpen: false))
}
