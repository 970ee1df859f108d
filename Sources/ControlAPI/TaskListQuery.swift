import HTTPServer
import TaskAdvice
import TaskCore
import TaskStore

/// Which tasks a request asks for, and which members of each.
struct TaskListQuery: Hashable {
  var filter = TaskFilter()
  /// Empty: all.
  var members: Set<String> = []

  /// One value of a list.
  static let word = JSONSchema.text(pattern: "^[^,]+$", length: 1...200)

  static let queues = Route.Field(
    name: "queue", help: "Only tasks of one of these queues, separated by commas.", schema: word, isList: true)

  /// The fields that select tasks.
  static let filterFields = [
    Route.Field(
      name: "state", help: "Only tasks in one of these states, separated by commas.",
      schema: .text(values: TaskStatus.allCases.map(\.rawValue)), isList: true),
    queues,
    Route.Field(
      name: "kind", help: "Only tasks of one of these kinds, separated by commas.", schema: word, isList: true),
    Route.Field(
      name: "host",
      help: "Only tasks with one of these remote hosts, separated by commas; `BUCKET.s3` for s3:// URLs.",
      schema: word, isList: true),
    Route.Field(
      name: "code", help: "Only tasks whose last error has one of these codes, separated by commas.",
      schema: .text(pattern: "^[^,]+$", length: 1...100), isList: true),
    Route.Field(
      name: "label", help: "Only tasks with all of these labels, separated by commas: `K=V`, or `K` with any value.",
      schema: .text(pattern: "^[^,=]+(=[^,]*)?$", length: 1...400), isList: true),
    Route.Field(
      name: "text",
      help:
        "Only tasks with this in their id, source or destination, in any case of ASCII letters; not in URLs' queries.",
      schema: .text(length: 0...250)),
    Route.Field(name: "after", help: "Only tasks that were created at this time (RFC 3339) or later.", schema: .time),
    Route.Field(name: "before", help: "Only tasks that were created before this time (RFC 3339).", schema: .time),
  ]

  static let fields =
    filterFields + [
      Route.Field(
        name: "sort", help: "`-createdAt`: the newest first, as without it; `createdAt`: the oldest first.",
        schema: .text(values: TaskOrder.allCases.map(\.rawValue))),
      Route.Field(
        name: "limit", help: "How many tasks at most: 1 to 1000, or else 100.", schema: .integer("", 1...1000)),
      Route.Field(name: "cursor", help: "The `next` of the page before."),
      Route.Field(
        name: "fields", help: "Only these members of each task, separated by commas.",
        schema: .text(values: TaskReport.members), isList: true),
    ]

  /// `query` has been checked by ``fields``. Throws ``HTTPError``.
  init(_ query: [String: String]) throws(HTTPError) {
    filter = try Self.filter(query)
    if let text = query["sort"], let order = TaskOrder(rawValue: text) { filter.order = order }
    if let limit = query["limit"].flatMap({ Int($0) }) { filter.limit = limit }
    if let text = query["cursor"] {
      guard let cursor = TaskCursor(text) else {
        throw HTTPError(400, "\"cursor\" must be the \"next\" of a page before")
      }
      filter.cursor = cursor
    }
    members = Set(Self.words(query, "fields"))
  }

  /// The part of a query that selects tasks. Throws ``HTTPError``.
  private static func filter(_ query: [String: String]) throws(HTTPError) -> TaskFilter {
    var filter = TaskFilter()
    filter.states = Set(words(query, "state").compactMap(TaskStatus.init(rawValue:)))
    filter.queues = Set(words(query, "queue"))
    filter.kinds = Set(words(query, "kind").map(TaskKind.init(rawValue:)))
    filter.hosts = Set(words(query, "host").map { $0.lowercased() })
    filter.codes = Set(words(query, "code"))
    let labels = words(query, "label")
    do throws(LabelProblem) {
      filter.labels = try TaskFilter.labels(labels)
    } catch {
      throw HTTPError(400, "\(error)")
    }
    if let text = query["text"], !text.isEmpty {
      guard text.utf8.count <= 1000 else { throw HTTPError(400, "\"text\" must have at most 1000 bytes") }
      filter.text = text
    }
    filter.createdAfter = time(query, "after")
    filter.createdBefore = time(query, "before")
    return filter
  }

  /// The values of a field that is a list.
  static func words(_ query: [String: String], _ name: String) -> [String] {
    query[name]?.split(separator: ",").map(String.init) ?? []
  }

  /// The value of a field that is a time.
  static func time(_ query: [String: String], _ name: String) -> Timestamp? { query[name].flatMap { Timestamp($0) } }
}
