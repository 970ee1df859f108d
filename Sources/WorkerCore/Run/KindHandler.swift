import TaskCore
import TaskStore

/// Carries out the tasks of one kind.
package protocol KindHandler: Sendable {
  /// The name of the kind.
  var kind: TaskKind { get }
  /// Former names of the kind. Their tasks are carried out too.
  var aliases: [TaskKind] { get }
  var policy: KindPolicy { get }
  /// The name of the handler's own type, for messages.
  var typeName: String { get }

  /// Carries out one run. When it is canceled or the ledger throws, it records its progress if possible, changes
  /// nothing more and soon returns ``RunOutcome/stopped``.
  func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome

  /// Deletes what runs of a task left elsewhere. It may be called again after it has finished. If it throws, the error
  /// is logged, and it is called again later.
  func cleanUp(_ cleanup: Cleanup) async throws
}

extension KindHandler {
  package var aliases: [TaskKind] { [] }
  package var policy: KindPolicy { KindPolicy() }
  package var typeName: String { "\(Self.self)" }
  package func cleanUp(_ cleanup: Cleanup) async throws {}
}

/// How tasks of a kind are run, unless a task has its own settings.
package struct KindPolicy: Hashable, Sendable {
  /// The retry policy for tasks that have the standard one.
  package var retry: RetryPolicy?
  /// How long a run may take. After that it is stopped, and the attempt has failed.
  package var timeout: Duration?
  /// How many tasks of the kind may run at once in the whole fleet; nil for any number.
  package var concurrency: Int?

  package init(retry: RetryPolicy? = nil, timeout: Duration? = nil, concurrency: Int? = nil) {
    self.retry = retry
    self.timeout = timeout
    self.concurrency = concurrency
  }

  /// The retry policy of a task: each value of the task's own policy, or the kind's if the task has the standard value.
  package func retry(of task: TaskSpec) -> RetryPolicy {
    guard let retry else { return task.retry }
    let standard = RetryPolicy()
    return RetryPolicy(
      maxAttempts: task.retry.maxAttempts == standard.maxAttempts ? retry.maxAttempts : task.retry.maxAttempts,
      intervals: task.retry.intervals.isEmpty ? retry.intervals : task.retry.intervals)
  }
}

/// The handlers of a worker, one for each kind.
package struct HandlerTable: Sendable {
  /// The handlers by the present and former names of their kinds.
  private let byKind: [TaskKind: any KindHandler]
  package let all: [any KindHandler]

  /// Throws ``DuplicateKind``.
  package init(_ handlers: [any KindHandler]) throws(DuplicateKind) {
    var byKind: [TaskKind: any KindHandler] = [:]
    for handler in handlers {
      for kind in [handler.kind] + handler.aliases {
        if let other = byKind.updateValue(handler, forKey: kind) {
          throw DuplicateKind(kind: kind, handlers: [other.typeName, handler.typeName])
        }
      }
    }
    self.byKind = byKind
    all = handlers
  }

  package subscript(_ kind: TaskKind) -> (any KindHandler)? { byKind[kind] }

  /// All kinds that this worker claims.
  package var kinds: [TaskKind] { byKind.keys.sorted { $0.rawValue < $1.rawValue } }

  /// How many tasks of a kind its handler lets run at once, those of its former names included.
  package var limits: [TaskKind: Int] {
    Dictionary(all.compactMap { handler in handler.policy.concurrency.map { (handler.kind, $0) } }) { _, last in last }
  }

  /// The former names of kinds, and what they are now.
  package var formerNames: [TaskKind: TaskKind] {
    byKind.filter { $0.key != $0.value.kind }.mapValues(\.kind)
  }
}

/// Two handlers are registered for one kind.
package struct DuplicateKind: Error, Hashable, Sendable, CustomStringConvertible {
  package var kind: TaskKind
  package var handlers: [String]

  package init(kind: TaskKind, handlers: [String]) {
    self.kind = kind
    self.handlers = handlers
  }

  package var description: String {
    "the kind \(kind.rawValue) has two handlers, \(handlers.joined(separator: " and ")): register only one of them"
  }
}
