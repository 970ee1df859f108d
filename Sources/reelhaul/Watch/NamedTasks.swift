import TaskAdvice
import TaskCore

/// Tasks that are followed by their ids, each with the last document that was seen.
struct NamedTasks {
  private let ids: [UniqueID]
  private var last: [UniqueID: TaskDocument]
  private var present: Set<UniqueID> = []
  private var removed: Set<UniqueID> = []

  /// `known` are the documents of tasks that were already seen.
  init(_ ids: [UniqueID], known: [TaskDocument] = []) {
    self.ids = ids
    last = Dictionary(known.map { ($0.spec.id, $0) }) { $1 }
  }

  /// `found` are the tasks that exist now. Returns those that were seen before and no longer exist, each once.
  mutating func update(_ found: [UniqueID: TaskDocument]) -> [TaskDocument] {
    last.merge(found) { $1 }
    present = Set(found.keys)
    return documents.filter { !present.contains($0.spec.id) && removed.insert($0.spec.id).inserted }
  }

  /// The last documents in the order of the ids, including removed tasks, without tasks that were never seen.
  var documents: [TaskDocument] { ids.compactMap { last[$0] } }

  /// The tasks that exist.
  var existing: [TaskDocument] { documents.filter { present.contains($0.spec.id) } }

  /// The tasks that were never seen: no worker has stored them yet, or they were removed before.
  var unseen: [UniqueID] { ids.filter { last[$0] == nil } }

  /// Whether each task meets the condition or no longer exists.
  func areAll(_ isEnough: (TaskDocument) -> Bool) -> Bool {
    unseen.isEmpty && existing.allSatisfy(isEnough)
  }

  /// What to do about the first task that failed and still exists; nil if there is none.
  func advice(failing hasFailed: (TaskDocument) -> Bool) -> String? {
    FailureAdvice.sentence(existing.filter(hasFailed))
  }

  /// Ends a command that has followed them.
  func exit(_ context: Context, failing hasFailed: (TaskDocument) -> Bool) -> ExitCode {
    guard documents.contains(where: hasFailed) else { return .done }
    if let advice = advice(failing: hasFailed) { context.note(advice) }
    return .failed
  }
}
