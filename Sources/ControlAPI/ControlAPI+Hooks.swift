import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

extension ControlAPI {
  private static let hook = JSONSchema.object([
    .must("notify", .text("The URL to which each event of the queue's tasks is posted.").orNull)
  ])

  static let hookRoutes = [
    Route(
      method: "GET", path: "/v1/queues/{name}/notify",
      summary: "The web hook of a queue's tasks, without the values of its query.", needs: .admin,
      segments: ["name": .text(length: 1...100)], gives: hook
    ) { api, call in
      let url = try await api.store.queueHooks()[call.path["name"] ?? ""]
      return HTTPResponse(type: json, write(url.map(URLRedaction.redact)))
    },
    Route(
      method: "PUT", path: "/v1/queues/{name}/notify",
      summary: """
        Sets the web hook of a queue's tasks that have none of their own; null ends it. It holds within 5 s. What waits for \
        the former URL goes to the new one, or is dropped.
        """,
      needs: .admin, segments: ["name": .text(length: 1...100)], accepts: [json], takes: hook,
      example: #"{"notify": "https://example.org/hook"}"#, gives: hook
    ) { api, call in
      var given: String??
      try call.readBody(["notify"], withNulls: true) { reader, _ throws(DecodingFailure) in
        given = .some(try reader.null() ? nil : try reader.string(limit: TaskSpec.urlLimit))
      }
      guard let url = given else { throw HTTPError.missing("notify", "a URL, or null for none") }
      let queue = call.path["name"] ?? ""
      var spec = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .noop, source: "")
      (spec.queue, spec.notify) = (queue, url)
      do throws(InvalidTask) {
        try spec.validate()
      } catch {
        throw HTTPError(422, error.description)
      }
      try await api.store.setQueueHook(queue, to: url)
      return HTTPResponse(type: json, write(url.map(URLRedaction.redact)))
    },
  ]

  private static func write(_ url: String?) -> [UInt8] {
    JSONWriter.write { json in json.object { $0.member("notify", orNull: url) } }
  }
}
