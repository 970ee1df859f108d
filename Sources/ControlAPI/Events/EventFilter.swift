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

  static let fields = [
    Route.Field(name: "task", help: "Only events of these tasks: ids, separated by commas.", schema: .id, isList: true),
    Route.Field(
      name: "queue", help: "Only events of tasks of these queues, separated by commas.", schema: TaskListQuery.word,
      isList: true),
    Route.Field(
      name: "kind", help: "Only events of tasks of these kinds, separated by commas.", schema: TaskListQuery.word,
      isList: true),
    Route.Field(
      name: "type", help: "Only these events, separated by commas.",
      schema: .text(values: TaskEvent.Kind.allCases.map(\.rawValue)), isList: true),
    Route.Field(
      name: "state",
      help: """
        Only events whose document has one of these states, separated by commas. It is the state at the publication, which \
        may be later than the event: to miss no failure, use `type=failed`.
        """,
      schema: .text(values: TaskState.allCases.map(\.rawValue)), isList: true),
  ]

  /// `query` has been checked by ``fields``.
  init(_ query: [String: String], allowed: Set<String>?) {
    tasks = Set(TaskListQuery.words(query, "task").compactMap { UniqueID($0) })
    queues = Set(TaskListQuery.words(query, "queue"))
    kinds = Set(TaskListQuery.words(query, "kind"))
    states = Set(TaskListQuery.words(query, "state"))
    types = Set(TaskListQuery.words(query, "type"))
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
