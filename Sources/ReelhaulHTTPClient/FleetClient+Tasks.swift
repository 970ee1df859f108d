import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FleetClient {
  /// Submits a task and returns its id, once Kafka has it. A repetition with the same id submits it once.
  @discardableResult
  public func submit(_ task: NewTask) async throws -> UUID {
    struct Answer: Decodable { var id: UUID }
    var request = request(
      "POST", ["v1", "tasks"], body: try Self.encode(task), type: "application/json")
    request.setValue(task.id.uuidString.lowercased(), forHTTPHeaderField: "Idempotency-Key")
    let answer: Answer = try await send(request)
    return answer.id
  }

  /// Submits many tasks. Wrong ones do not hold up the others: there is one result for each task, in their order.
  ///
  /// Long lists take several requests. Throws only if the first one fails, or if the calling task is canceled; if a later
  /// one fails, its error is the result of all tasks from there on.
  public func submit(_ tasks: [NewTask]) async throws -> [Result<UUID, FleetError>] {
    var results: [Result<UUID, FleetError>] = tasks.map { .success($0.id) }
    var lines: [(index: Int, json: Data)] = []
    for (index, task) in tasks.enumerated() {
      do throws(FleetError) {
        lines.append((index, try Self.line(of: task)))
      } catch {
        results[index] = .failure(error)
      }
    }
    var rest = lines[...]
    while !rest.isEmpty {
      var bytes = 0
      let part = rest.prefix(Self.tasksAtOnce).prefix { line in
        bytes += line.json.count + 1
        return bytes <= Self.bytesAtOnce
      }
      do {
        let answers = try await submit(lines: part.map(\.json))
        for (number, line) in part.enumerated() {
          if let error = Self.refusal(answers[number + 1]) { results[line.index] = .failure(error) }
        }
      } catch let error as FleetError where part.startIndex > 0 {
        for line in rest { results[line.index] = .failure(error) }
        return results
      }
      rest = rest[part.endIndex...]
    }
    return results
  }

  private struct Answers: Decodable {
    struct Line: Decodable {
      var line: Int
      var id: UUID?
      var code: String?
      var error: String?
    }
    var results: [Line]
  }

  private static func line(of task: NewTask) throws(FleetError) -> Data {
    let line = try encode(task)
    guard line.count < bytesAtOnce else {
      throw FleetError(.invalidTask, "it has \(line.count) bytes, more than a server reads")
    }
    return line
  }

  /// The answers by the numbers of their lines, from 1.
  private func submit(lines: [Data]) async throws -> [Int: Answers.Line] {
    // A repetition needs no key: every line has an id of its own.
    let request = request(
      "POST", ["v1", "tasks"], body: Data(lines.joined(separator: Data("\n".utf8))), type: "application/x-ndjson")
    let answers: Answers
    do {
      answers = try await send(request)
    } catch let error as FleetError where error.status == 422 {
      // All lines are wrong.
      guard let told = error.body.flatMap({ try? Self.decoder().decode(Answers.self, from: $0) }) else { throw error }
      answers = told
    }
    return Dictionary(answers.results.map { ($0.line, $0) }) { $1 }
  }

  /// Nil if the line was submitted.
  private static func refusal(_ line: Answers.Line?) -> FleetError? {
    guard line?.id == nil else { return nil }
    var error = FleetError(.invalidTask, line?.error ?? "the server told nothing of this task")
    if let code = line?.code { error.code = FleetError.Code(rawValue: code) }
    return error
  }

  /// The limit of the server for one request is 10,000 lines.
  private static let tasksAtOnce = 500
  /// What a server reads of one request.
  private static let bytesAtOnce = 4 << 20

  /// All about a task. Throws ``FleetError/Code/notFound``, also for some moments after its submit: a worker has yet to
  /// read it from Kafka.
  public func task(_ id: UUID) async throws -> FleetTask {
    try await send(request("GET", ["v1", "tasks", id.uuidString.lowercased()]))
  }

  /// One page of tasks, the newest first unless the query says otherwise.
  public func page(_ query: TaskQuery = .init(), cursor: String? = nil) async throws -> TaskPage {
    try await send(request("GET", ["v1", "tasks"], query: try query.items(cursor: cursor)))
  }

  /// All tasks that match, page by page. Tasks that are submitted meanwhile are not among them, unless the oldest come first: then
  /// the query should say until when (`createdBefore`), or the end may keep moving.
  public func tasks(_ query: TaskQuery = .init()) -> AsyncThrowingStream<FleetTask, any Error> {
    let pages = Pages(client: self, query: query)
    return AsyncThrowingStream { try await pages.next() }
  }

  private actor Pages {
    let client: FleetClient
    let query: TaskQuery
    var rest: ArraySlice<FleetTask> = []
    var cursor: String?
    var isLast = false

    init(client: FleetClient, query: TaskQuery) {
      self.client = client
      self.query = query
    }

    func next() async throws -> FleetTask? {
      while rest.isEmpty, !isLast {
        let page = try await client.page(query, cursor: cursor)
        (rest, cursor, isLast) = (page.tasks[...], page.next, page.next == nil)
      }
      return rest.popFirst()
    }
  }

  /// Stops a task; what it has is kept. A running one stops soon after.
  ///
  /// Like the commands below, it returns once a worker has applied it. Throws ``FleetError/Code/refused`` if the task's
  /// state does not allow it, and ``FleetError/Code/notApplied`` if no worker has applied it within 30 seconds (two thirds
  /// of ``Configuration/timeout``, if that is less).
  public func pause(_ id: UUID) async throws { try await act(id, "pause") }
  /// Lets a paused task go on from what it has.
  public func resume(_ id: UUID) async throws { try await act(id, "resume") }
  /// Ends a task; what it has is deleted. A running one ends soon after.
  public func cancel(_ id: UUID) async throws { try await act(id, "cancel") }
  /// Lets a failed or canceled task run again.
  public func retry(_ id: UUID) async throws { try await act(id, "retry") }
  /// Forgets a task. `files`: also deletes the file that it made in a storage.
  public func remove(_ id: UUID, files: Bool = false) async throws {
    try await act(id, "remove", ["files": .bool(files)])
  }
  /// Higher ones run first: -1000…1000.
  public func prioritize(_ id: UUID, _ priority: Int) async throws {
    try await act(id, "prioritize", ["priority": .integer(Int64(priority))])
  }

  private func act(_ id: UUID, _ action: String, _ fields: [String: JSONValue] = [:]) async throws {
    struct Answer: Decodable { var outcome: String? }
    let patience = min(30, max(1, configuration.timeout.components.seconds * 2 / 3))
    var request = request(
      "POST", ["v1", "tasks", id.uuidString.lowercased(), "actions", action],
      query: [("wait", "applied"), ("timeout", "\(patience)")], body: try Self.encode(fields), type: "application/json")
    request.setValue(UUID().uuidString.lowercased(), forHTTPHeaderField: "Idempotency-Key")
    let answer: Answer = try await send(request)
    guard answer.outcome != nil else {
      throw FleetError(.notApplied, "the command was sent, and no worker has applied it within \(patience) s")
    }
  }
}
