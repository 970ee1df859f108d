extension TaskMachine {
  /// A legal move from one state to another.
  public struct Transition: Hashable, Sendable {
    /// `nil` if the event submits the task.
    public let from: TaskState?
    /// The name of the event.
    public let event: String
    /// The intent that must be pending for this move, if any.
    public let intent: Intent?
    /// `nil` if the event removes the task.
    public let to: TaskState?
  }

  /// At least one event of every case.
  static let sampleEvents: [Event] = [
    .dependenciesSatisfied, .claimed, .publishing, .succeeded, .failed(retryIn: .seconds(1)), .failed(retryIn: nil),
    .progressed(retryIn: .seconds(1)), .released(delay: .zero), .leaseExpired, .control(.pause), .control(.resume),
    .control(.cancel), .control(.retry), .control(.remove), .control(.prioritize(1)),
  ]

  /// Every move that changes the state. The list is made by trying every event in every state.
  public static let transitions: [Transition] = {
    var found: [Transition] = []
    func add(_ transition: Transition) {
      if !found.contains(transition) { found.append(transition) }
    }
    for (paused, waits) in [(false, true), (false, false), (true, false)] {
      let event = paused ? "submitted, paused" : waits ? "submitted after others" : "submitted"
      add(Transition(from: nil, event: event, intent: nil, to: submit(paused: paused, waitsForOthers: waits).0.state))
    }
    for state in TaskState.allCases {
      for intent in state.isOwned ? [nil, .pause, .cancel] : [nil] as [Intent?] {
        for waits in state.isOwned ? [false] : [false, true] {
          for event in sampleEvents {
            var task = TaskMachine(state: state, intent: intent, waitsForOthers: waits)
            guard (try? task.handle(event)) != nil, task.isRemoved || task.state != state else { continue }
            let needsIntent = event != .succeeded && event != .publishing
            add(
              Transition(
                from: state, event: event.name, intent: needsIntent ? intent : nil,
                to: task.isRemoved ? nil : task.state))
          }
        }
      }
    }
    return found
  }()
}
