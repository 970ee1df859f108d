import TaskCore

/// A part of a batch of commands. In it, all submits can run before all controls without changing the result.
struct CommandSegment {
  /// The submitted tasks, each id once, with the indices in the batch.
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

  /// Whether the batch must run alone: it reads rows that another batch may be writing, or it creates lanes while it
  /// has tasks locked; see `begin_apply`.
  var goesAlone: Bool {
    submits.contains { !$0.spec.after.isEmpty }
      || controls.contains { control in
        switch control.control.action {
        case .remove, .prioritize: true
        case .pause, .resume, .cancel, .retry: false
        }
      }
  }

  /// The tasks that controls name, and the tasks that new tasks wait for.
  var namedTasks: [UniqueID] {
    controls.map(\.control.taskID) + submits.flatMap(\.spec.after)
  }
}
