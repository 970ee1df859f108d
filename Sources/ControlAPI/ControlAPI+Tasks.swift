import HTTPServer
import ReelhaulCodec
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  static let json = "application/json"

  private static let filters = [
    Route.Field(name: "state", help: "Only tasks in this state.", values: TaskStatus.allCases.map(\.rawValue)),
    Route.Field(name: "queue", help: "Only tasks of this queue.", schema: .text(length: 1...100)),
    Route.Field(name: "limit", help: "How many tasks at most, or else 100.", schema: .integer("", 1...1000)),
  ]

  static let listFields = filters

  static let taskRoutes =
    [
      Route(
        method: "GET", path: "/v1/tasks", summary: "The tasks, the newest first.", needs: .read, isPerQueue: true,
        query: filters, gives: .taskList
      ) { api, call in HTTPResponse(type: json, try await api.list(call.query, for: call.principal)) }
    ] + submitRoutes + showRoutes + actionRoutes

  /// Throws ``HTTPError``.
  static func filter(_ query: [String: String]) throws -> TaskFilter {
    TaskFilter(
      state: query["state"].flatMap { TaskStatus(rawValue: $0) }, queue: query["queue"],
      limit: query["limit"].flatMap { Int($0) } ?? 100)
  }

  /// `{"tasks": […], "hasMore": …}`
  func list(_ query: [String: String], for principal: Principal) async throws -> [UInt8] {
    let filter = try Self.filter(query)
    var wider = filter
    wider.limit += 1
    let found = try await tasks(wider, for: principal)
    let reports = try await TaskReport.of(Array(found.prefix(filter.limit)), in: store)
    return JSONWriter.write(capacity: 64 << 10) { json in
      json.object { json in
        json.name("tasks")
        json.array { json in
          for report in reports { TaskReport.write(report, to: &json) }
        }
        json.member("hasMore", found.count > filter.limit)
      }
    }
  }

  /// The newest of the tasks that a principal reaches.
  private func tasks(_ filter: TaskFilter, for principal: Principal) async throws -> [TaskDocument] {
    guard let queues = principal.reachable(of: filter.queue.map { [$0] }) else { return try await store.tasks(filter) }
    var found: [TaskDocument] = []
    for queue in queues {
      var filter = filter
      filter.queue = queue
      found += try await store.tasks(filter)
    }
    return Array(found.sorted { ($0.createdAt, $0.spec.id) > ($1.createdAt, $1.spec.id) }.prefix(filter.limit))
  }
}
