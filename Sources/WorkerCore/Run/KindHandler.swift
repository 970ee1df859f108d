import TaskCore
import TaskStore

/// What carries out the tasks of one kind.
package protocol KindHandler: Sendable {
  /// The name of the kind.
  var kind: TaskKind { get }
  /// Former names of the kind, whose tasks are carried out, too.
  var aliases: [TaskKind] { get }
  var policy: KindPolicy { get }
  /// The type that somebody wrote, for messages.
  var typeName: String { get }

  /// Carries out one run. Canceled, it records what it has, stops touching anything and returns
  /// ``RunOutcome/stopped``, soon; the same when the ledger throws.
  func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome

  /// Deletes what runs of a task left elsewhere. It may be called again, and then finds nothing to do. What it throws is
  /// logged, and it is called again later.
  func cleanUp(_ cleanup: Cleanup) async throws
}

extension KindHandler {
  package var aliases: [TaskKind] { [] }
  package var policy: KindPolicy { KindPolicy() }
  package var typeName: String { "\(Self.self)" }
  package func cleanUp(_ cleanup: Cleanup) async throws {}
}

/// How tasks of a kind are run, where a task does not say it itself.
package struct KindPolicy: Hashable, Sendable {
  /// For tasks that have the standard one.
  package var retry: RetryPolicy?
  /// The longest a run may take; then it is stopped, and the attempt has failed.
  package var timeout: Duration?
  /// How many tasks of the kind run at once in the whole fleet; nil: any number.
  package var concurrency: Int?

  package init(retry: RetryPolicy? = nil, timeout: Duration? = nil, concurrency: Int? = nil) {
    self.retry = retry
    self.timeout = timeout
    self.concurrency = concurrency
  }

  /// How a task is retried: as it says itself, and as its kind says where the task has the standard value.
  package func retry(of task: TaskSpec) -> RetryPolicy {
    guard let retry else { return task.retry }
    let standard = RetryPolicy()
    return RetryPolicy(
      maxAttempts: task.retry.maxAttempts == standard.maxAttempts ? retry.maxAttempts : task.retry.maxAttempts,
      intervals: task.retry.intervals.isEmpty ? retry.intervals : task.retry.intervals)
  }
}

/// The handlers of a worker, each kind with one.
package struct HandlerTable: Sendable {
  /// By name and by former name.
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

  /// Everything that this worker claims.
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

/// Two handlers claim to be the one of a kind.
package struct DuplicateKind: Error, Hashable, Sendable, CustomStringConvertible {
  package var kind: TaskKind
  package var handlers: [String]

  package init(kind: TaskKind, handlers: [String]) {
    self.kind = kind
    self.handlers = handlers
  }

  package var description: String {
    "the kind \(kind.rawValue) has two handlers, \(handlers.joined(separator: " and ")): register one of them"
  }
}
