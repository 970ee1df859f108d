import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

/// Commands to everything that matches a filter. ``OperationDriver`` works them off.
extension ControlAPI {
  private static let newest = 100

  static let operationRoutes = [
    Route(
      method: "POST", path: "/v1/operations",
      summary: """
        Sends a command to each task that matches `filter` (an empty one matches all), or to the tasks `ids`. Only tasks \
        that were created before are touched, and only those whose state allows the action get a command. It looks for \
        them once older operations with another action that may touch the same tasks have ended (`waitsFor`). With \
        `dry_run=true` it sends nothing, and tells how many tasks would get one. Of one Idempotency-Key it is one \
        operation.
        """,
      needs: .write, isPerQueue: true,
      query: [
        Route.Field(name: "dry_run", help: "Only tell what it would do.", schema: .text(values: ["true", "false"]))
      ],
      headers: [IdempotencyKeys.field("the same key is the same operation")],
      accepts: [json], takes: .operationBody, example: #"{"action": "retry", "filter": {"state": ["failed"]}}"#,
      answers: [200, 202, 422], gives: .either([.operation, .operationPreview])
    ) { api, call in
      let operation = try newOperation(call)
      if call.query["dry_run"] == "true" { return try await api.preview(operation) }
      let created: TaskOperation
      do { created = try await api.store.createOperation(operation) } catch let error as TooManyOperations {
        throw HTTPError(429, "\(error)")
      }
      guard created.action == operation.action, created.selection == operation.selection else {
        throw HTTPError(
          422, "this Idempotency-Key belongs to another operation, \(created.id)", code: ProblemCode.keyReused.rawValue)
      }
      return HTTPResponse(
        202, headers: ["Location": "/v1/operations/\(created.id)"], type: json,
        JSONWriter.write { created.write(to: &$0) })
    },
    Route(
      method: "GET", path: "/v1/operations",
      summary: "The newest 100 operations. They are kept for 30 days after their end.", needs: .read, isPerQueue: true,
      gives: .object([.must("operations", .list(.operation))])
    ) { api, call in
      HTTPResponse(type: json, try await api.operations(for: call.principal))
    },
    Route(
      method: "GET", path: "/v1/operations/{id}", summary: "An operation and how far it is.", needs: .read,
      isPerQueue: true, segments: ["id": .id], answers: [200, 404], gives: .operation
    ) { api, call in
      let operation = try await api.operation(call)
      return HTTPResponse(type: json, JSONWriter.write { operation.write(to: &$0, withIDs: true) })
    },
    Route(
      method: "POST", path: "/v1/operations/{id}/cancel",
      summary: "No further command is sent. Commands that Kafka has already are applied.", needs: .write,
      isPerQueue: true, segments: ["id": .id], accepts: [json], takes: .object([], isOpen: false), example: "{}",
      answers: [200, 404], gives: .operation
    ) { api, call in
      try call.readBody([]) { reader, _ throws(DecodingFailure) in try reader.skip() }
      let operation = try await api.operation(call)
      let canceled = try await api.store.cancelOperation(operation.id) ?? operation
      return HTTPResponse(type: json, JSONWriter.write { canceled.write(to: &$0) })
    },
  ]

  /// `{"operations": […]}`, of those that the principal could have begun.
  func operations(for principal: Principal) async throws -> [UInt8] {
    let operations = try await store.operations(limit: Self.newest, within: principal.queues)
    return JSONWriter.write(capacity: 4096) { json in
      json.object { json in
        json.name("operations")
        json.array { json in
          for operation in operations { operation.write(to: &json) }
        }
      }
    }
  }

  private func operation(_ call: Route.Call) async throws -> TaskOperation {
    let id = try call.id
    guard let operation = try await store.operation(id), operation.isVisible(to: call.principal) else {
      throw HTTPError(404, "there is no operation \(id)")
    }
    return operation
  }

  private func preview(_ operation: TaskOperation) async throws -> HTTPResponse {
    let preview = try await OperationPreview.of(operation, in: store)
    let known = try await store.tasks(preview.examples)
    let reports = try await TaskReport.of(preview.examples.compactMap { known[$0] }, in: store)
    return HTTPResponse(type: Self.json, JSONWriter.write(capacity: 8192) { preview.write(reports, to: &$0) })
  }

  private static func newOperation(_ call: Route.Call) throws(HTTPError) -> TaskOperation {
    var (name, priority, files): (String?, Int?, Bool) = (nil, nil, false)
    var (filter, ids): (OperationFilter?, [UniqueID]?) = (nil, nil)
    try call.readBody(["action", "filter", "ids", "priority", "files"]) { reader, member throws(DecodingFailure) in
      switch member {
      case "action": name = try reader.string(limit: 64)
      case "priority": priority = try reader.integer(TaskSpec.priorities)
      case "files": files = try reader.bool()
      case "filter":
        let its = try OperationFilter(from: &reader)
        filter = its
        // What is wrong is refused here only: operations that are stored already stay readable. Every task has the empty
        // text.
        guard its.text?.isEmpty != true else { throw reader.invalid("the text of a filter must not be empty") }
        do throws(LabelProblem) { _ = try TaskFilter.labels(its.labels) } catch { throw reader.invalid("\(error)") }
      case "ids":
        ids = try reader.uuids()
        guard ids?.count ?? 0 <= TaskOperation.mostIDs else {
          throw reader.invalid("there are more than \(TaskOperation.mostIDs) ids")
        }
      default: try reader.skip()
      }
    }
    guard !TaskSpec.hasNUL(json: call.request.body) else {
      throw HTTPError(422, "a filter contains \\u0000, which no task has", code: ProblemCode.invalidField.rawValue)
    }
    let names = ControlAction.names.joined(separator: ", ")
    guard let name else { throw .missing("action", "one of \(names)") }
    guard ControlAction.names.contains(name) else {
      throw HTTPError(422, "\"action\" must be one of \(names)", code: ProblemCode.invalidField.rawValue)
    }
    guard let action = ControlAction(name: name, priority: priority, files: files) else {
      throw .missing("priority", "it is the new priority")
    }
    let selection: TaskOperation.Selection
    switch (filter, ids) {
    case (let filter?, nil): selection = .filter(filter)
    case (nil, let ids?):
      // Each task gets one command.
      var named: Set<UniqueID> = []
      selection = .ids(ids.filter { named.insert($0).inserted })
    default: throw HTTPError(422, "give either \"filter\" or \"ids\": an empty filter, {}, matches every task")
    }
    let key = try IdempotencyKeys.key(of: call.request)
    return TaskOperation(
      id: key.map { IdempotencyKeys.id("operation \($0)", of: call.principal) } ?? .make(),
      action: action, selection: selection, queues: call.principal.queues?.sorted(), actor: call.principal.actor,
      // The store's own time counts.
      createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
  }
}

extension OperationPreview {
  /// `{"count", "isAtLeast", "impossible", "examples", "at"}`
  package func write(_ reports: [TaskReport], to json: inout JSONWriter) {
    json.object { json in
      json.member("count", count)
      json.member("isAtLeast", isAtLeast)
      json.member("impossible", impossible)
      json.name("examples")
      json.array { json in
        for report in reports { report.write(to: &json) }
      }
      json.member("at", at)
    }
  }
}

extension TaskOperation {
  fileprivate func isVisible(to principal: Principal) -> Bool {
    guard let theirs = principal.queues else { return true }
    return queues.map(theirs.isSuperset) ?? false
  }
}

extension JSONSchema {
  static let operation = named(
    "Operation",
    .object([
      .must("id", id), .must("action", text(values: ControlAction.names)), .may("priority", integer()),
      .may("files", flag()), .may("filter", operationFilter), .may("ids", integer("How many tasks it names.", 0...)),
      .may("taskIds", list(id, "Those tasks. Only where one operation is asked for.", most: TaskOperation.mostIDs)),
      .must("actor", text("Who began it.").orNull),
      .must("state", text(values: TaskOperation.State.allCases.map(\.rawValue))),
      .may(
        "waitsFor",
        .object(
          [.must("id", id), .must("action", text(values: ControlAction.names))],
          "An older operation that may touch the same tasks: this one looks for its tasks once that one has ended.")),
      .must("matched", integer("Tasks that were found so far.", 0...)),
      .must("sent", integer("Commands that Kafka has.", 0...)), .must("applied", integer("", 0...)),
      .must("refused", integer("Tasks whose state did not allow it, and commands that were refused.", 0...)),
      .must("refusals", map(integer("", 1...), "How many were refused, by code.")), .must("createdAt", time),
      .must("finishedAt", time.orNull), .must("error", text().orNull),
    ]))

  static let operationPreview = named(
    "OperationPreview",
    .object([
      .must("count", integer("Tasks that would get a command.", 0...)),
      .must("isAtLeast", flag("Whether there are more.")),
      .must("impossible", integer("Tasks that match, but whose state does not allow it.", 0...)),
      .must("examples", list(task, "The newest of them.", most: 10)),
      .must(
        "at",
        text(
          "Tasks that were created at this time or later do not count; as `before` of the filter, it keeps them out.",
          format: "date-time")),
    ]))

  static let operationFilter = named(
    "OperationFilter",
    .object(
      [
        .may("state", list(text(values: TaskStatus.allCases.map(\.rawValue)))), .may("queue", list(text())),
        .may("kind", list(text())), .may("host", list(text())), .may("code", list(text())),
        .may("label", list(text("NAME or NAME=VALUE"), "A task must have all of them.")),
        .may("text", text("A part of the id, the source or the destination.", length: 1...250)), .may("after", time),
        .may("before", time),
      ], isOpen: false))

  static let operationBody = named(
    "OperationBody",
    .object(
      [
        .must("action", text(values: ControlAction.names)), .may("filter", operationFilter),
        .may("ids", list(id, most: TaskOperation.mostIDs)), .may("priority", integer("Of `prioritize`.", -1000...1000)),
        .may("files", flag("Of `remove`: whether the files that the tasks made in storages go too.")),
      ], isOpen: false))
}
