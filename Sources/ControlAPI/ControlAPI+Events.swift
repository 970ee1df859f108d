import HTTPServer
import ReelhaulSystem
import TaskCore
import TaskStore

extension ControlAPI {
  static let eventRoutes = [
    Route(
      method: "GET", path: "/v1/events",
      summary: """
        Server-sent events: the state changes of tasks, as the topic `events` has them. First comes `ready`: what happens \
        from then on is sent. Each event has an opaque `id`; a client that comes back with it, in the header Last-Event-ID \
        or in `lastEventId`, gets everything that it has missed, from any server of the fleet, as long as Kafka keeps the \
        events. If it does not, `gap` says so. `trouble`: Kafka cannot be read at present. `ping` comes every 15 s in which \
        nothing else does. With `progress=true` there are also `progress` events, of which some may get lost.
        """,
      needs: .read, isPerQueue: true,
      query: EventFilter.fields + [
        Route.Field(
          name: "progress", help: "Whether samples of the progress of running tasks come too.",
          schema: .text(values: ["true", "false"])),
        Route.Field(
          name: "from",
          help: "`start` begins with the submission of the one task that is named in `task`, if Kafka still has it.",
          schema: .text(values: ["start", "now"])),
        Route.Field(name: "lastEventId", help: "As the header Last-Event-ID, which a page cannot set."),
      ], headers: [Route.Field(name: "Last-Event-ID", help: "The `id` of the last event that was seen.")],
      answers: [200], medium: "text/event-stream"
    ) { api, call in try await api.events(call) }
  ]

  private func events(_ call: Route.Call) async throws -> HTTPResponse {
    let filter = EventFilter(call.query, allowed: call.principal.queues)
    let start = try await start(call, filter)
    guard let hub = events else { throw HTTPError(503, "this server reads no events") }
    let wantsProgress = call.query["progress"] == "true"
    return HTTPResponse(
      headers: ["Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-store"],
      body: .stream { [store] stream in
        await EventFeed(hub: hub, stream: stream, filter: filter, wantsProgress: wantsProgress) { ids in
          try await store.tasks(ids).mapValues {
            TaskTraits(queue: $0.spec.queue, kind: $0.spec.kind.rawValue, state: TaskState.running.rawValue)
          }
        }.run(from: start)
      })
  }

  private func start(_ call: Route.Call, _ filter: EventFilter) async throws -> EventFeed.Start {
    let header = call.request.headers["last-event-id"].flatMap { $0.isEmpty ? nil : $0 }
    // A browser that connects again sends the header; the field is then the older one.
    if let text = header ?? call.query["lastEventId"] {
      guard let cursor = EventCursor(text) else { throw HTTPError(400, "the last event's id is none of this API") }
      return .after(cursor)
    }
    guard call.query["from"] == "start" else { return .now }
    guard let id = filter.tasks.first, filter.tasks.count == 1 else {
      throw HTTPError(400, "\"from=start\" needs one task in \"task\"")
    }
    // No worker has read it yet, or it was removed: then the time in its id, if that is one.
    let now = Clocks.realtimeMicroseconds()
    let created = try await store.task(id)?.createdAt.microseconds ?? min(Int64(id.high >> 16) * 1000, now)
    return .task(id, submittedAt: created / 1000)
  }
}
