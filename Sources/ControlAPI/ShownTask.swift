import ReelhaulCodec
import TaskAdvice
import TaskCore
import TaskStore

/// A task as one answer shows it.
struct ShownTask: Sendable {
  let task: TaskDocument
  let json: [UInt8]
  let tag: String

  /// Those of these tasks that exist. The number of statements does not depend on how many there are.
  static func read(_ ids: [UniqueID], from store: any ControlStore) async throws -> [UniqueID: ShownTask] {
    let tasks = try await store.tasks(ids)
    let working = tasks.values.filter { $0.state != .succeeded && $0.spec.kind != .noop }.map(\.spec.id)
    let checkpoints = working.isEmpty ? [:] : try await store.checkpoints(of: working)
    let reasons = try await WaitReason.of(Array(tasks.values), in: store)
    return tasks.mapValues { task in
      let id = task.spec.id
      let report = TaskReport(
        task: task, waits: reasons[id], recorded: checkpoints[id].flatMap { RecordedWork($0, of: task.spec.kind) })
      let json = JSONWriter.write(capacity: 2048) { report.write(advice: FailureAdvice.of(task), to: &$0) }
      return ShownTask(task: task, json: json, tag: EntityTag.of(json, sequence: task.sequence))
    }
  }
}
