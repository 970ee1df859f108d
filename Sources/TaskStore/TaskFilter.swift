import TaskCore

/// Selects the tasks to list, and how. A set that is empty selects everything.
package struct TaskFilter: Hashable, Sendable {
  /// ``TaskStatus/queued`` selects all queued tasks, whatever they wait for.
  package var states: Set<TaskStatus>
  package var queues: Set<String>
  package var kinds: Set<TaskKind>
  /// Remote hosts as in ``LaneKey/host``.
  package var hosts: Set<String>
  /// Codes of the last error, such as `http_404`.
  package var codes: Set<String>
  /// Labels that a task must have, all of them: with this value, or with any if it is nil.
  package var labels: [String: String?]
  /// A part of the id, or of the source or the destination up to its query, in any case.
  package var text: String?
  /// The earliest time of creation.
  package var createdAfter: Timestamp?
  /// Tasks that were created at this time or later are left out.
  package var createdBefore: Timestamp?
  package var order: TaskOrder
  /// Where the page before ended.
  package var cursor: TaskCursor?
  /// 1…10,000.
  package var limit: Int

  package init(
    states: Set<TaskStatus> = [], queues: Set<String> = [], kinds: Set<TaskKind> = [], hosts: Set<String> = [],
    codes: Set<String> = [], labels: [String: String?] = [:], text: String? = nil, createdAfter: Timestamp? = nil,
    createdBefore: Timestamp? = nil, order: TaskOrder = .newestFirst, cursor: TaskCursor? = nil, limit: Int = 100
  ) {
    self.states = states
    self.queues = queues
    self.kinds = kinds
    self.hosts = hosts
    self.codes = codes
    self.labels = labels
    self.text = text
    self.createdAfter = createdAfter
    self.createdBefore = createdBefore
    self.order = order
    self.cursor = cursor
    self.limit = limit
  }

  /// One state and one queue; nil selects all.
  package init(state: TaskStatus?, queue: String? = nil, limit: Int = 100) {
    self.init(states: Set([state].compactMap { $0 }), queues: Set([queue].compactMap { $0 }), limit: limit)
  }

  package init(queue: String?, limit: Int = 100) {
    self.init(state: nil, queue: queue, limit: limit)
  }
}

/// By the time of creation, and by id among equal times.
package enum TaskOrder: String, CaseIterable, Sendable {
  case newestFirst = "-createdAt"
  case oldestFirst = "createdAt"
}

/// A place in the order of tasks. It stays where it is while tasks come and go, so that pages neither repeat nor skip a
/// task that was there from the first page on.
package struct TaskCursor: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var createdAt: Timestamp
  package var id: UniqueID

  package init(createdAt: Timestamp, id: UniqueID) {
    self.createdAt = createdAt
    self.id = id
  }

  /// Reads ``description``.
  package init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "_", maxSplits: 1)
    guard parts.count == 2, let time = Int64(parts[0]).map(Timestamp.init(microseconds:)),
      Timestamp.first...Timestamp.last ~= time, let id = UniqueID(String(parts[1]))
    else { return nil }
    self.init(createdAt: time, id: id)
  }

  package static func < (a: TaskCursor, b: TaskCursor) -> Bool { (a.createdAt, a.id) < (b.createdAt, b.id) }

  /// The time in microseconds and the id. For others it is opaque.
  package var description: String { "\(createdAt.microseconds)_\(id)" }
}

/// Some of the tasks that fit a filter.
package struct TaskPage<Element: Sendable>: Sendable {
  package var tasks: [Element]
  /// Where the next page begins; nil if there is nothing behind this one.
  package var next: TaskCursor?
  /// Set if the page has fewer tasks than asked for, because it had looked at as many as a page may: to this time.
  package var searchedTo: Timestamp?

  package init(tasks: [Element], next: TaskCursor? = nil, searchedTo: Timestamp? = nil) {
    self.tasks = tasks
    self.next = next
    self.searchedTo = searchedTo
  }
}

extension TaskPage: Equatable where Element: Equatable {}

extension TaskReader {
  /// The tasks of ``fullPage(_:)``.
  package func tasks(_ filter: TaskFilter) async throws -> [TaskDocument] { try await fullPage(filter).tasks }

  /// A page that is only shorter than asked for if there are no more tasks, however long it takes.
  package func fullPage(_ filter: TaskFilter) async throws -> TaskPage<TaskDocument> {
    var page = try await self.page(filter)
    while let next = page.next, page.tasks.count < filter.limit {
      var rest = filter
      rest.limit -= page.tasks.count
      rest.cursor = next
      let more = try await self.page(rest)
      page = TaskPage(tasks: page.tasks + more.tasks, next: more.next)
    }
    return page
  }
}
