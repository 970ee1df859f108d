import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  static let listRoutes = [
    Route(
      method: "GET", path: "/v1/tasks",
      summary: """
        The tasks that fit, the newest first, in pages that stay right while tasks come and go. `next` is the cursor of the \
        next page. A page looks at a bounded number of tasks: if that ends it early, `searchedTo` says how far it looked, \
        and the next page goes on there.
        """,
      needs: .read, isPerQueue: true, query: TaskListQuery.fields, gives: .taskList
    ) { api, call in
      HTTPResponse(type: json, try await api.list(try TaskListQuery(call.query), for: call.principal))
    }
  ]

  /// `{"tasks": […], "hasMore": …, "next": …, "searchedTo": …}`
  func list(_ query: TaskListQuery, for principal: Principal) async throws -> [UInt8] {
    let page = try await page(query.filter, for: principal)
    let needsReasons = query.members.isEmpty || query.members.contains("waits")
    let reports =
      needsReasons
      ? try await TaskReport.of(page.tasks, in: store) : page.tasks.map { TaskReport(task: $0, waits: nil) }
    return JSONWriter.write(capacity: 64 << 10) { json in
      json.object { json in
        json.name("tasks")
        json.array { json in
          for report in reports { report.write(only: query.members, to: &json) }
        }
        json.member("hasMore", page.next != nil)
        json.member("next", orNull: page.next?.description)
        json.member("searchedTo", orNull: page.searchedTo)
      }
    }
  }

  /// The tasks of a page that a principal reaches.
  private func page(_ filter: TaskFilter, for principal: Principal) async throws -> TaskPage<TaskDocument> {
    var filter = filter
    if let queues = principal.reachable(of: filter.queues.isEmpty ? nil : filter.queues) {
      // No queue would mean all queues.
      guard !queues.isEmpty else { return TaskPage(tasks: []) }
      filter.queues = queues
    }
    return try await store.page(filter)
  }
}
