import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

/// Commands that could not be applied: to look at, to send again, to drop.
extension ControlAPI {
  static let deadLetterRoutes = [
    Route(
      method: "GET", path: "/v1/dead-letters",
      summary: """
        Commands that could not be applied and that nobody has replayed or dropped, the newest first. `next` is the \
        cursor of the following page.
        """,
      needs: .admin,
      query: [
        Route.Field(name: "limit", help: "How many at most, or else 50.", schema: .integer("", 1...200)),
        Route.Field(name: "cursor", help: "The `next` of the page before."),
      ], answers: [200, 400, 503],
      gives: .object([
        .must("deadLetters", .list(.deadLetter)), .must("hasMore", .flag()), .must("next", .text().orNull),
      ])
    ) { api, call in
      let limit = call.query["limit"].flatMap { Int($0) } ?? 50
      let cursor = try call.query["cursor"].map(offsets)
      let page = try await api.letters.pending(before: cursor, limit: limit, in: api.store)
      return HTTPResponse(type: json, JSONWriter.write(capacity: 64 << 10) { write(page, to: &$0) })
    },
    Route(
      method: "GET", path: "/v1/dead-letters/{id}", summary: "A dead letter with its whole text.", needs: .admin,
      answers: [200, 404, 503], gives: .deadLetter
    ) { api, call in
      let letter = try await api.letter(call)
      return HTTPResponse(type: json, JSONWriter.write { letter.write(to: &$0) })
    },
    Route(
      method: "POST", path: "/v1/dead-letters/{id}/actions/replay",
      summary: """
        Sends the command again, or the corrected one in the body. It goes through Kafka like everyone's, and sending it \
        twice changes nothing. If it is refused again, it is a new dead letter.
        """,
      needs: .admin, accepts: [json], takes: .object([], "A whole command; nothing or {} for the same one."),
      example: "{}", answers: [202, 404, 422, 503], gives: .replayed
    ) { api, call in
      let letter = try await api.letter(call)
      let body = call.request.body
      let isEmpty = body.allSatisfy { [0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: "{"), UInt8(ascii: "}")].contains($0) }
      let command: Command
      do throws(Rejection) {
        command = try letter.replay(isEmpty ? nil : body, by: call.principal.actor)
      } catch {
        throw HTTPError(422, error.reason, code: error.code.problem.rawValue)
      }
      try await api.deliver(command, isRepeatable: true)
      try await api.store.mark(letter.mark, .replayed, actor: call.principal.actor)
      return HTTPResponse(
        202, type: json,
        JSONWriter.write { json in
          json.object { json in
            json.member("id", letter.name)
            if case .control(let control) = command { json.member("command", control.id) }
            json.member("task", command.taskID)
          }
        })
    },
    Route(
      method: "POST", path: "/v1/dead-letters/{id}/actions/drop",
      summary: "The letter is not listed any more. Kafka keeps it as long as its topic does.", needs: .admin,
      accepts: [json], takes: .object([], isOpen: false), example: "{}", answers: [200, 404, 503], gives: .replayed
    ) { api, call in
      try call.readBody([]) { reader, _ throws(DecodingFailure) in try reader.skip() }
      let letter = try await api.letter(call)
      try await api.store.mark(letter.mark, .dropped, actor: call.principal.actor)
      return HTTPResponse(type: json, JSONWriter.write { json in json.object { $0.member("id", letter.name) } })
    },
  ]

  private var letters: any DeadLetterSource {
    get throws(HTTPError) {
      guard let deadLetters else { throw HTTPError(503, "this server does not read the dead letters") }
      return deadLetters
    }
  }

  private func letter(_ call: Route.Call) async throws -> DeadLetter {
    let name = call.path["id"] ?? ""
    guard let place = DeadLetter.place(name), let letter = try await letters.letter(place.partition, place.offset)
    else { throw HTTPError(404, "there is no dead letter \"\(name.prefix(100))\"") }
    return letter
  }

  private static func write(_ page: DeadLetterPage, to json: inout JSONWriter) {
    json.object { json in
      json.name("deadLetters")
      json.array { json in
        for letter in page.letters { letter.write(to: &json) }
      }
      json.member("hasMore", page.next != nil)
      let next = page.next?.sorted { $0.key < $1.key }.map { "\($0)-\($1)" }.joined(separator: ".")
      json.member("next", orNull: next)
    }
  }

  private static func offsets(_ cursor: String) throws(HTTPError) -> [Int32: Int64] {
    var offsets: [Int32: Int64] = [:]
    for part in cursor.split(separator: ".", omittingEmptySubsequences: false) {
      guard let place = DeadLetter.place(String(part)),
        offsets.updateValue(place.offset, forKey: place.partition) == nil
      else { throw HTTPError(400, "\"cursor\" must be the \"next\" of a page") }
    }
    return offsets
  }
}

extension JSONSchema {
  static let deadLetter = named(
    "DeadLetter",
    .object([
      .must("id", text("PARTITION-OFFSET in the topic of the dead letters.")), .must("at", time),
      .must("topic", text("Where the command was.")), .must("partition", integer()), .must("offset", integer()),
      .must("code", text("Why it was not applied, as a word.")), .must("reason", text("The same, for people.")),
      .must("taskId", id.orNull), .must("text", text("The command as it was sent.")),
      .must("bytes", integer("The size of the command.", 0...)),
      .must("isCut", flag("Whether `text` is only its beginning.")),
    ]))

  static let replayed = named(
    "DeadLetterAnswer",
    .object([
      .must("id", text()), .may("command", id), .may("task", id),
    ]))
}
