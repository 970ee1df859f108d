import HTTPServer
import TaskCore

/// Which events a client gets. An empty set of a field lets all pass.
struct EventFilter: Sendable {
  var tasks: Set<UniqueID> = []
  var queues: Set<String> = []
  var kinds: Set<String> = []
  var states: Set<String> = []
  var types: Set<String> = []
  /// The queues that the client may see; nil for all.
  var allowed: Set<String>?

  private static let most = 1000

  static let fields = [
    Route.Field(name: "task", help: "Only events of these tasks: ids, separated by commas."),
    Route.Field(name: "queue", help: "Only events of tasks of these queues, separated by commas."),
    Route.Field(name: "kind", help: "Only events of tasks of these kinds, separated by commas."),
    Route.Field(
      name: "type",
      help:
        "Only these events, separated by commas: \(TaskEvent.Kind.allCases.map(\.rawValue).joined(separator: ", "))."
    ),
    Route.Field(
      name: "state", help: "Only events after which the task is in one of these states, separated by commas."),
  ]

  /// Throws ``HTTPError`` for a wrong value.
  init(_ query: [String: String], allowed: Set<String>?) throws(HTTPError) {
    func values(_ name: String, of known: [String]? = nil) throws(HTTPError) -> Set<String> {
      guard let text = query[name] else { return [] }
      let values = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      guard values.count <= Self.most else { throw HTTPError(400, "\"\(name)\" has more than \(Self.most) values") }
      for value in values where value.isEmpty || known?.contains(value) == false {
        let choice = known.map { "one of \($0.joined(separator: ", "))" } ?? "a name"
        throw HTTPError(400, "\"\(name)\" must be \(choice), or several separated by commas")
      }
      return Set(values)
    }
    for text in try values("task") {
      guard let id = UniqueID(text) else { throw HTTPError(400, "\"\(text.prefix(100))\" is no id of a task") }
      tasks.insert(id)
    }
    queues = try values("queue")
    kinds = try values("kind")
    states = try values("state", of: TaskState.allCases.map(\.rawValue))
    types = try values("type", of: TaskEvent.Kind.allCases.map(\.rawValue))
    self.allowed = allowed
  }

  func admits(_ entry: EventEntry) -> Bool {
    (tasks.isEmpty || tasks.contains(entry.taskID)) && (types.isEmpty || types.contains(entry.type))
      && admits(entry.task)
  }

  /// A task of which nothing is known passes only if nothing about it is asked for.
  func admits(_ traits: TaskTraits?) -> Bool {
    guard asksForTraits else { return true }
    guard let traits else { return false }
    return allowed?.contains(traits.queue) != false && (queues.isEmpty || queues.contains(traits.queue))
      && (kinds.isEmpty || kinds.contains(traits.kind)) && (states.isEmpty || states.contains(traits.state))
  }

  var asksForTraits: Bool { allowed != nil || !queues.isEmpty || !kinds.isEmpty || !states.isEmpty }
}
