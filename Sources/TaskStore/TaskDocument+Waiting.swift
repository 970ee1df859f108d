import TaskCore

extension TaskDocument {
  /// Whether a queued task was not tried yet and needs a storage root: perhaps nobody has it.
  var mayWaitForStorage: Bool {
    state == .queued && error == nil && runAt == nil && !LaneKey(spec).storage.isEmpty
  }

  /// Adds the reason where no worker has the root. `usable` are the roots of all live workers; `nil`: there is none.
  func explained(usable: Set<String>?) -> TaskDocument {
    let root = LaneKey(spec).storage
    guard mayWaitForStorage, let usable, !usable.contains(root) else { return self }
    var document = self
    document.error = TaskFailure(
      code: .storageMissing, message: "no running worker has the storage \(root)", class: .wait)
    return document
  }
}
