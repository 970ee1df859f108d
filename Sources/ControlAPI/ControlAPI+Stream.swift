import HTTPServer
import ReelhaulSystem

extension ControlAPI {
  /// How often the store is asked for what a stream shows, however many look at it.
  private static let interval = Duration.seconds(1)
  /// How long the store may take before the stream says that there is trouble.
  private static let patience = Duration.seconds(5)

  static let streamRoute = Route(
    method: "GET", path: "/v1/stream",
    summary: """
      Server-sent events: `overview` as /v1/overview and `tasks` as /v1/tasks with the same filters, and \
      `operations` as /v1/operations, at once and when they change; `trouble` while the fleet's state cannot be read; `ping` every 15 s in which nothing changes. Every connection begins with the state as it is, so \
      that nothing is missed after a break.
      """,
    needs: .read, isPerQueue: true, query: TaskListQuery.fields, answers: [200, 400], medium: "text/event-stream"
  ) { api, call in
    // A wrong filter is an answer, not an event.
    let query = try TaskListQuery(call.query)
    return HTTPResponse(
      headers: ["Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-store"],
      body: .stream { stream in await api.stream(query, for: call.principal, to: stream) })
  }

  private func stream(
    _ query: TaskListQuery, for principal: Principal, to stream: HTTPStream
  ) async {
    // Hashes: a page may have a hundred megabytes.
    var last: [String: Int] = [:]
    var quiet = BootInstant.now
    /// A client with bytes on their way is slow, but not forgotten.
    func tell(_ name: String) -> Bool {
      stream.pending > 0 || stream.send(Array("event: \(name)\ndata: {}\n\n".utf8))
    }
    guard stream.send(Array("retry: 1000\n\n".utf8)) else { return }
    while !Task.isCancelled {
      do {
        let parts = try await soon { [self] in try await self.parts(query, for: principal) }
        for (name, data) in parts {
          let hash = Self.hash(data)
          guard last[name] != hash else { continue }
          // A slow reader gets the next state instead of all states, and so does one beside many slow readers.
          guard stream.pending == 0 else { continue }
          let event = Array("event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
          guard stream.hasRoom(for: event.count) else { continue }
          last[name] = hash
          quiet = .now
          guard stream.send(event) else { return }
        }
      } catch is CancellationError {
        return
      } catch {
        last = [:]
        guard tell("trouble") else { return }
      }
      if quiet + settings.ping < .now {
        quiet = .now
        guard tell("ping") else { return }
      }
      do { try await loop.sleep(for: Self.interval) } catch { return }
    }
  }

  private static func hash(_ data: [UInt8]) -> Int {
    var hasher = Hasher()
    data.withUnsafeBytes { hasher.combine(bytes: $0) }
    return hasher.finalize()
  }

  private func parts(
    _ query: TaskListQuery, for principal: Principal
  ) async throws -> [(name: String, data: [UInt8])] {
    let overview = try await overview(for: principal)
    let tasks = try await snapshots.value(.init("tasks", of: principal.queues, query), age: Self.interval / 2) {
      [self] in
      try await list(query, for: principal)
    }
    let operations = try await snapshots.value(.init("operations", of: principal.queues), age: Self.interval / 2) {
      [self] in
      try await self.operations(for: principal)
    }
    return [("overview", overview), ("operations", operations), ("tasks", tasks)]
  }

  private struct Late: Error {}

  /// What `read` returns. Throws ``Late`` if the store does not answer in time: a statement may wait for a minute, and
  /// a proxy does not wait as long for a stream that says nothing. Then `read` goes on by itself.
  private func soon<Value: Sendable>(_ read: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let result = await loop.result(of: loop.task(read), by: .now + Self.patience)
    try Task.checkCancellation()
    guard let result else { throw Late() }
    return try result.get()
  }
}
