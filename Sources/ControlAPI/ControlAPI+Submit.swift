import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore

extension ControlAPI {
  static let lines = "application/x-ndjson"
  private static let mostLines = 10_000

  static let submitRoutes = [
    Route(
      method: "POST", path: "/v1/tasks",
      summary: """
        Submits one task, or with JSON lines many. The answer comes once Kafka has them. With `Idempotency-Key`, the same \
        key is the same task, and must come with the same body. If Kafka does not confirm them in time, the problem (504) \
        has their ids: sent again with these, or as they were if they had ids or a key of their own, they are made once.
        """,
      needs: .write, isPerQueue: true, query: Waiting.fields,
      headers: [IdempotencyKeys.field("the same key is the same task")], accepts: [json, lines], takes: .submission,
      example: #"{"source": "https://example.org/talk.mp4", "destination": "storage://default/talk.mp4"}"#,
      answers: [200, 202, 409], gives: .either([.submitted, .submittedLines]), refuses: [422: .submittedLines]
    ) { api, call in
      let isMany = call.request.headers["content-type"]?.lowercased().hasPrefix(lines) == true
      return isMany ? try await api.submitMany(call) : try await api.submitOne(call)
    }
  ]

  private func submitOne(_ call: Route.Call) async throws -> HTTPResponse {
    let waiting = Waiting(call.query)
    let id = try IdempotencyKeys.key(of: call.request).map { IdempotencyKeys.id($0, of: call.principal) }
    var command: Command
    var isRepeatable = true
    do throws(Rejection) {
      command = try CommandDecoder.decode(line: call.request.body) {
        isRepeatable = id != nil
        return id ?? .make()
      }
    } catch {
      throw HTTPError(422, error.reason, code: error.code.problem.rawValue)
    }
    guard case .submit(var spec) = command else {
      throw HTTPError(422, "this is a command, not a task: POST /v1/tasks/{id}/actions/{action} sends commands")
    }
    if spec.traceparent == nil { spec.trace = call.trace }
    command = .submit(spec)
    if let problem = try await lack([command], for: call.principal)[0] { throw problem }
    var isKnown = false
    if let id {
      // First the store, so that a wrong body is not remembered as the key's.
      let former = try await shown.value(spec.id)?.task.spec
      if let former, !former.differences(from: spec).isEmpty { throw IdempotencyKeys.reused }
      try keys.claim(id, body: call.request.body)
      isKnown = former != nil
    } else if case .applied = waiting {
      isKnown = try await shown.value(spec.id) != nil
    }
    try await deliver(command, isRepeatable: isRepeatable)
    var outcome: String?
    var differs = false
    if case .applied(let end) = waiting,
      let stored = try await Waiting.poll(until: end, on: loop, { try await stored(spec.id) })
    {
      // Another server may have got the id with another body meanwhile.
      differs = !stored.task.spec.differences(from: spec).isEmpty
      if id != nil, differs { throw IdempotencyKeys.reused }
      outcome = isKnown || differs ? "duplicate" : "applied"
    }
    return HTTPResponse(
      outcome == nil ? 202 : 200, headers: ["Location": "/v1/tasks/\(spec.id)"], type: Self.json,
      JSONWriter.write { json in
        json.object { json in
          json.member("id", spec.id)
          json.member("outcome", outcome)
          if differs { json.member("differs", true) }
        }
      })
  }

  /// The task; nil until it is applied. Throws if it never will be, because its id is that of a removed task.
  private func stored(_ id: UniqueID) async throws -> ShownTask? {
    if let task = try await shown.value(id) { return task }
    guard try await removed.value(id) == nil else {
      throw Self.wasRemoved(id)
    }
    return nil
  }

  private static func wasRemoved(_ id: UniqueID) -> HTTPError {
    HTTPError(
      409, "the task \(id) was removed, and a submit with its id changes nothing: use another id or Idempotency-Key",
      code: ProblemCode.taskRemoved.rawValue)
  }

  /// So many documents of tasks are read at once.
  private static let atOnce = 500

  /// For each command, what keeps this principal from sending it: it concerns a task of a queue that is out of reach.
  private func lack(_ commands: [Command], for principal: Principal) async throws -> [HTTPError?] {
    guard principal.queues != nil else { return commands.map { _ in nil } }
    // A task also tells of those that it comes after.
    let named = commands.flatMap { command -> [UniqueID] in
      if case .submit(let spec) = command { [spec.id] + spec.after } else { [command.taskID] }
    }
    let known = try await reached(Array(Set(named)), by: principal)
    // By earlier commands of this request.
    var submitted: Set<UniqueID> = []
    return commands.map { command in
      guard case .submit(let spec) = command else {
        guard known[command.taskID] ?? submitted.contains(command.taskID) else {
          return HTTPError(404, "there is no task \(command.taskID)")
        }
        return nil
      }
      guard principal.reaches(queue: spec.queue) else {
        return HTTPError(403, "this token is for other queues than \"\(spec.queue)\"")
      }
      if known[spec.id] == false { return HTTPError(409, "the id \(spec.id) is taken") }
      if let hidden = spec.after.first(where: { known[$0] == false }) {
        return HTTPError(409, "there is no task \(hidden) that this one can come after")
      }
      submitted.insert(spec.id)
      return nil
    }
  }

  /// Of the tasks that exist, whether this principal reaches them. In parts: a request may name 100,000 tasks, and they may
  /// have long documents.
  private func reached(_ ids: [UniqueID], by principal: Principal) async throws -> [UniqueID: Bool] {
    var reached: [UniqueID: Bool] = [:]
    for start in stride(from: 0, to: ids.count, by: Self.atOnce) {
      let part = try await store.tasks(Array(ids[start..<min(start + Self.atOnce, ids.count)]))
      reached.merge(part.mapValues(principal.reaches)) { $1 }
    }
    return reached
  }

  /// Why a line has no effect.
  private struct Refusal: Error {
    var code: ProblemCode
    /// The worker's word for it, if one has refused the command.
    var reason: String?
    var message: String

    init(_ code: ProblemCode, _ message: String, reason: String? = nil) {
      (self.code, self.message, self.reason) = (code, message, reason)
    }

    init(_ rejection: Rejection) { self.init(rejection.code.problem, rejection.reason) }

    init(_ error: HTTPError) {
      self.init(error.code.flatMap(ProblemCode.init(rawValue:)) ?? ProblemCode(status: error.status), error.message)
    }
  }

  /// A line of a submission, and what became of it.
  private struct Line {
    let number: Int
    /// The id that follows from the request's key, which the line has if it tells none; nil without a key.
    var idOfKey: UniqueID?
    /// Whether it has the same id whenever its request is sent.
    var isRepeatable: Bool
    var command: Result<Command, Refusal>
    /// Why Kafka may not have it.
    var loss: KafkaError?
    var outcome: String?
    /// Whether another task has its id.
    var differs = false

    var isRight: Bool { if case .success = command { true } else { false } }
  }

  /// `{"results": [{"line": 1, "id": …} or {"line": 2, "error": …}]}`; the right lines are sent although others are wrong.
  /// With a key, each line without an id gets one of its key and number.
  private func submitMany(_ call: Route.Call) async throws -> HTTPResponse {
    let waiting = Waiting(call.query)
    let key = try IdempotencyKeys.key(of: call.request)
    var lines = try Self.read(call.request.body, key: key, call)
    guard !lines.isEmpty else { throw HTTPError(422, "the body has no lines") }
    let places = lines.indices.filter { lines[$0].isRight }
    let commands = try places.map { try lines[$0].command.get() }
    for (place, problem) in zip(places, try await lack(commands, for: call.principal)) {
      guard let problem else { continue }
      lines[place].command = .failure(Refusal(problem))
    }
    let sent = lines.compactMap { try? $0.command.get() }
    var hasSent = false
    if !sent.isEmpty {
      // A line with an id of its own is compared with nothing: it has its result.
      let ids = Set(lines.compactMap(\.idOfKey))
      let ofKey = sent.filter { ids.contains($0.taskID) }
      if let key {
        // First the store, as for one task. A body without a right line leaves its key free.
        guard try await others(among: ofKey).isEmpty else { throw IdempotencyKeys.reused }
        try keys.claim(IdempotencyKeys.id("\(key) lines", of: call.principal), body: call.request.body)
      }
      let before = waiting == .sent ? [] : try await present(sent.map(\.taskID))
      try await deliver(&lines)
      hasSent = lines.contains(where: \.isRight)
      if case .applied(let end) = waiting {
        try await settle(&lines, known: before, until: end)
        refuse(try await others(among: ofKey), in: &lines)
      }
    }
    let isSettled = lines.allSatisfy { $0.outcome != nil || !$0.isRight }
    return HTTPResponse(
      !hasSent ? 422 : isSettled ? 200 : 202, type: Self.json,
      JSONWriter.write(capacity: lines.count * 64) { json in json.object { Self.write(lines, to: &$0) } })
  }

  /// Sends the right lines. What is too large for Kafka is a wrong one. Throws ``Unsent`` if it may not have others.
  private func deliver(_ lines: inout [Line]) async throws {
    let places = lines.indices.filter { lines[$0].isRight }
    do {
      try await send(places.map { try lines[$0].command.get() })
    } catch let error as ReelhaulClientError {
      // Also those that Kafka has would be done twice.
      let isRepeatable = places.allSatisfy { lines[$0].isRepeatable }
      for (index, cause) in error.causes {
        if cause.code == .messageTooLarge {
          lines[places[index]].command = .failure(Refusal(.tooLarge, Unsent.tooLarge))
        } else {
          lines[places[index]].loss = cause
        }
      }
      let losses = lines.compactMap(\.loss)
      // Some may have arrived if not all were refused.
      guard let cause = losses.first(where: { !$0.isRefusal }) ?? losses.first else { return }
      throw Unsent(cause: cause, isRepeatable: isRepeatable) { [lines] in Self.write(lines, to: &$0) }
    }
  }

  private static func read(_ body: [UInt8], key: String?, _ call: Route.Call) throws(HTTPError) -> [Line] {
    let principal = call.principal
    var ids = UniqueIDMaker()
    var lines: [Line] = []
    // Empty lines cost nothing, however many they are.
    var (rest, number) = (body[...], 0)
    while !rest.isEmpty {
      let line = rest.prefix { $0 != UInt8(ascii: "\n") }
      rest = rest.dropFirst(line.count + 1)
      number += 1
      guard line.contains(where: { $0 > 0x20 }) else { continue }
      guard lines.count < Self.mostLines else {
        throw HTTPError(413, "there are more than \(Self.mostLines) lines: send them in several requests")
      }
      let idOfKey = key.map { IdempotencyKeys.id("\($0) line \(number)", of: principal) }
      var isRepeatable = true
      let decoded = Result { () throws(Rejection) -> Command in
        let command = try CommandDecoder.decode(line: Array(line)) {
          isRepeatable = idOfKey != nil
          return idOfKey ?? ids.make()
        }
        switch command {
        case .submit(var spec):
          if spec.traceparent == nil { spec.trace = call.trace }
          return .submit(spec)
        case .control(var control):
          // Who shows a token cannot act under another name.
          if principal.token != nil || control.actor == nil { control.actor = principal.actor }
          if let key, control.id == idOfKey {
            // The store compares no commands: with the same key, another one must not pass for this one.
            control.id = IdempotencyKeys.id(
              "\(key) line \(number) \(String(decoding: line, as: UTF8.self))", of: principal)
          }
          return .control(control)
        }
      }
      lines.append(
        Line(number: number, idOfKey: idOfKey, isRepeatable: isRepeatable, command: decoded.mapError(Refusal.init)))
    }
    return lines
  }

  /// The ids of submitted tasks under which the store has another task.
  private func others(among commands: [Command]) async throws -> Set<UniqueID> {
    let specs = commands.compactMap { if case .submit(let spec) = $0 { spec } else { nil } }
    var (others, same) = (Set<UniqueID>(), Set<UniqueID>())
    for (spec, differs) in zip(specs, try await differ(specs)) {
      guard let differs else { continue }
      if differs { others.insert(spec.id) } else { same.insert(spec.id) }
    }
    // Of two lines with one id, one is the task.
    return others.subtracting(same)
  }

  /// For each of these, whether the store has another task under its id; nil if it has none.
  private func differ(_ specs: [TaskSpec]) async throws -> [Bool?] {
    var all: [Bool?] = []
    for start in stride(from: 0, to: specs.count, by: Self.atOnce) {
      let part = specs[start..<min(start + Self.atOnce, specs.count)]
      let stored = try await store.tasks(part.map(\.id))
      all += part.map { spec in stored[spec.id].map { !$0.spec.differences(from: spec).isEmpty } }
    }
    return all
  }

  /// Another server got the key with another body meanwhile, and these tasks are of that one.
  private func refuse(_ others: Set<UniqueID>, in lines: inout [Line]) {
    for place in lines.indices {
      guard case .success(.submit(let spec)) = lines[place].command, others.contains(spec.id) else { continue }
      lines[place].command = .failure(Refusal(IdempotencyKeys.reused))
    }
  }

  /// Those of these tasks that exist.
  private func present(_ ids: [UniqueID]) async throws -> Set<UniqueID> {
    Set(try await store.states(of: ids).keys)
  }

  /// Waits until all lines are applied or refused, or the time is over.
  private func settle(_ lines: inout [Line], known: Set<UniqueID>, until end: BootInstant) async throws {
    var (open, known) = (lines.indices.filter { lines[$0].isRight }, known)
    _ = try await Waiting.poll(until: end, on: loop) { () -> Bool? in
      let commands = try open.map { try lines[$0].command.get() }
      let controls = commands.compactMap { if case .control(let control) = $0 { control.id } else { nil } }
      let outcomes = try await store.outcomes(of: controls)
      let submits = commands.compactMap { if case .submit(let spec) = $0 { spec } else { nil } }
      let tasks = try await present(submits.map(\.id))
      let removed = try await store.removed(among: submits.map(\.id).filter { !tasks.contains($0) })
      let made = submits.filter { tasks.contains($0.id) }
      var differs = try await differ(made).makeIterator()
      for (place, command) in zip(open, commands) {
        switch command {
        case .submit(let spec) where tasks.contains(spec.id):
          // It may have been removed meanwhile.
          guard let isOther = differs.next() ?? nil else { continue }
          lines[place].differs = isOther
          // Of lines with one id, the first that is the task has made it.
          lines[place].outcome = isOther || !known.insert(spec.id).inserted ? "duplicate" : "applied"
        case .submit(let spec):
          if removed[spec.id] != nil { lines[place].command = .failure(Refusal(Self.wasRemoved(spec.id))) }
        case .control(let control):
          switch outcomes[control.id] {
          case nil: break
          case .applied: lines[place].outcome = "applied"
          case .refused(let code, let reason):
            lines[place].command = .failure(Refusal(.refused, reason, reason: code))
          }
        }
      }
      open = open.filter { lines[$0].isRight && lines[$0].outcome == nil }
      return open.isEmpty ? true : nil
    }
  }

  private static func write(_ lines: [Line], to json: inout JSONWriter) {
    json.name("results")
    json.array { json in
      for line in lines {
        json.object { json in
          json.member("line", line.number)
          switch line.command {
          case .success(let command):
            guard let loss = line.loss else {
              json.member("id", command.taskID)
              json.member("outcome", line.outcome)
              if line.differs { json.member("differs", true) }
              return
            }
            json.members(idsOf: command)
            json.member("code", ProblemCode.unavailable.rawValue)
            json.member(
              "error", loss.isRefusal ? "Kafka refuses it" : "Kafka did not confirm it in time, and may still have it")
          case .failure(let refusal):
            json.member("code", refusal.code.rawValue)
            json.member("reason", refusal.reason)
            json.member("error", refusal.message)
          }
        }
      }
    }
  }
}
