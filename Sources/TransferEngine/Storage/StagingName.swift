import TaskCore

/// The name of a staging file: which task's bytes it holds, and of which version of the source. `<task>-<generation>`
package struct StagingName: Hashable, Sendable, LosslessStringConvertible {
  package let task: UUID
  package let generation: Int

  package init(task: UUID, generation: Int) {
    self.task = task
    self.generation = generation
  }

  package init?(_ text: String) {
    guard text.utf8.count > 37, let task = UUID(String(text.prefix(36))), let generation = Int(text.dropFirst(37))
    else {
      return nil
    }
    self.init(task: task, generation: generation)
    guard description == text else { return nil }
  }

  package var description: String { "\(task)-\(generation)" }
}
