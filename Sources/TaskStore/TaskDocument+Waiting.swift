import TaskCore

extension TaskDocument {
  /// Whether a queued task was not tried yet and needs a storage root: perhaps nobody has it.
  package var mayWaitForStorage: Bool {
    state == .queued && error == nil && runAt == nil && !LaneKey(spec).storages.isEmpty
  }

  /// Adds the reason where no worker has the roots. `usable` are the roots of each live worker; empty: there is none.
  package func explained(usable: [Set<String>]) -> TaskDocument {
    guard mayWaitForStorage, !usable.isEmpty, let lack = LaneKey(spec).lack(of: usable) else { return self }
    var document = self
    document.error = TaskFailure(
      code: .storageMissing, message: "no running worker has \(lack)", class: .wait)
    return document
  }
}

extension LaneKey {
  /// Describes the storages that the tasks need and no worker has; nil if one worker has all of them. `usable` has the
  /// storages of each worker.
  package func lack(of usable: [Set<String>]) -> String? {
    guard !usable.contains(where: { $0.isSuperset(of: storages) }) else { return nil }
    let missing = storages.filter { root in !usable.contains { $0.contains(root) } }
    guard !missing.isEmpty else { return "both storages, \(storages.joined(separator: " and "))" }
    return "the \(missing.count == 1 ? "storage" : "storages") \(missing.joined(separator: " and "))"
  }
}
