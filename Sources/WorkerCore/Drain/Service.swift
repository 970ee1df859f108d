import ReelhaulSystem

/// One service of a worker: what it runs, when it starts, and how the drain ends it.
///
/// A worker lists its services in the order in which they start. Every step of the drain walks the list backwards.
struct Service: Sendable {
  enum Start: Sendable {
    case atOnce
    /// After the first lease has begun, because before that the store may belong to another fleet.
    case underLease
  }

  /// A step of the drain in which services end; the actions of ``DrainMachine`` of the same names.
  enum Step: Sendable {
    case stopIntake
    case relay
    case flush
    case retire
  }

  struct Stop: Sendable {
    /// The step that cancels the service. An exit cancels all remaining services.
    var canceled: Step
    /// The step that waits for the end of the service: ``Step/relay`` until its deadline, the others without a limit.
    /// Nil: no step waits for it.
    var awaited: Step?
    /// The work of the service before its end. The step that waits for the end calls it first, with its deadline.
    var finish: (@Sendable (_ until: BootInstant?) async -> Void)?

    /// Canceled by `step`, which waits for the end.
    static func ended(in step: Step) -> Stop { Stop(canceled: step, awaited: step) }

    /// Canceled by `step`; no step waits for the end.
    static func canceled(in step: Step) -> Stop { Stop(canceled: step) }
  }

  let name: String
  let start: Start
  let stop: Stop
  /// Runs until its task is canceled, or until it has finished.
  let run: @Sendable () async -> Void

  init(_ name: String, start: Start = .atOnce, stop: Stop, run: @escaping @Sendable () async -> Void) {
    self.name = name
    self.start = start
    self.stop = stop
    self.run = run
  }
}
