import TaskCore

/// The name of a staging file, `<task>-<epoch>-<generation>`: the task, the owner that made the file, and the version
/// of the source.
///
/// No two owners make files with the same name, so a late file of a former owner is a separate file. A former owner
/// may still remove a file that was handed on. The owner then finds it gone, and starts again.
package struct StagingName: Hashable, Sendable, LosslessStringConvertible {
  package let task: UniqueID
  package let epoch: Int
  package let generation: Int

  package init(task: UniqueID, epoch: Int, generation: Int) {
    self.task = task
    self.epoch = epoch
    self.generation = generation
  }

  package init?(_ text: String) {
    let numbers = text.dropFirst(37).split(separator: "-", omittingEmptySubsequences: false)
    guard numbers.count == 2, let task = UniqueID(String(text.prefix(36))), let epoch = Int(numbers[0]),
      let generation = Int(numbers[1])
    else { return nil }
    self.init(task: task, epoch: epoch, generation: generation)
    guard description == text else { return nil }
  }

  package var description: String { "\(task)-\(epoch)-\(generation)" }
}
