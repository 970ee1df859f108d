import TaskCore

/// A part of a batch in which all submits can go before all controls without changing what the batch means.
struct CommandSegment {
  /// New task ids, each once, with its index in the batch.
  var submits: [(index: Int, spec: TaskSpec)] = []
  var controls: [(index: Int, control: Command.Control)] = []
  private var submitted: Set<UniqueID> = []
  private var controlled: Set<UniqueID> = []

  /// Splits a batch; the indices of repeated submits are in `duplicates`.
  static func split(_ commands: [Command]) -> (segments: [CommandSegment], duplicates: [Int]) {
    var segments: [CommandSegment] = []
    var duplicates: [Int] = []
    var current = CommandSegment()
    for (index, command) in commands.enumerated() {
      switch command {
      case .submit(let spec):
        if current.controlled.contains(spec.id) {
          segments.append(current)
          current = CommandSegment()
        }
        if current.submitted.insert(spec.id).inserted {
          current.submits.append((index, spec))
        } else {
          duplicates.append(index)
        }
      case .control(let control):
        current.controlled.insert(control.taskID)
        current.controls.append((index, control))
      }
    }
    if !current.submits.isEmpty || !current.controls.isEmpty { segments.append(current) }
    return (segments, duplicates)
  }

  /// It reads what other batches may be about to write, or creates lanes behind locked tasks; see `begin_apply`.
  var goesAlone: Bool {
    submits.contains { !$0.spec.after.isEmpty }
      || controls.contains { control in
        switch control.control.action {
        case .remove, .prioritize: true
        case .pause, .resume, .cancel, .retry: false
        }
      }
  }

  /// The tasks that controls steer and that new tasks come after.
  var namedTasks: [UniqueID] {
    controls.map(\.control.taskID) + submits.flatMap(\.spec.after)
  }
}
