import TaskCore

/// Tasks that are followed by their ids, each with the last document that was seen of it.
struct NamedTasks {
  private let ids: [UniqueID]
  private var last: [UniqueID: TaskDocument]
  private var present: Set<UniqueID> = []
  private var removed: Set<UniqueID> = []

  /// `known` are those of the tasks that were seen already.
  init(_ ids: [UniqueID], known: [TaskDocument] = []) {
    self.ids = ids
    last = Dictionary(known.map { ($0.spec.id, $0) }) { $1 }
  }

  /// `found` are those that exist now. Returns those that were seen before and are gone, each once.
  mutating func update(_ found: [UniqueID: TaskDocument]) -> [TaskDocument] {
    last.merge(found) { $1 }
    present = Set(found.keys)
    return documents.filter { !present.contains($0.spec.id) && removed.insert($0.spec.id).inserted }
  }

  /// In the order of the ids, also of those that are gone; without those that were never seen.
  var documents: [TaskDocument] { ids.compactMap { last[$0] } }

  /// Those that exist.
  var existing: [TaskDocument] { documents.filter { present.contains($0.spec.id) } }

  /// How many were never seen: nobody has stored them yet.
  var unseen: Int { ids.count { last[$0] == nil } }

  /// Whether each is as wanted, or gone: nothing will change it any more.
  func areAll(_ isEnough: (TaskDocument) -> Bool) -> Bool {
    unseen == 0 && existing.allSatisfy(isEnough)
  }
}
