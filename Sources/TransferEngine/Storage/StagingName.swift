import TaskCore

/// The name of a staging file: which task's bytes it holds, which of the task's owners made it, and of which version of
/// the source. `<task>-<epoch>-<generation>`
///
/// No two owners make files of one name: what a former one makes late is a file of its own. It may still remove one that
/// was handed on; the owner then finds it gone, and begins anew.
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
