import Glibc
import ReelhaulSystem
import TaskCore

/// Who asks for a command on this command line: `cli:USER@HOST`, of at most as many characters as a command may tell.
enum CommandActor {
  static let name: String = {
    let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
    let name = String("cli:\(user)@\(Machine.hostName)".unicodeScalars.prefix(Command.Control.actorLimit))
    return Command.Control.isActor(name) ? name : "cli"
  }()
}

extension Command {
  /// The same command, asked for by the user of this command line, unless it names somebody else.
  var withOrigin: Command {
    switch self {
    case .submit(let spec): return .submit(spec.withTrace)
    case .control(var control):
      control.actor = control.actor ?? CommandActor.name
      return .control(control)
    }
  }
}

extension TaskSpec {
  /// The span that `TRACEPARENT` names, as tracing tools set it for the programs that they run.
  private static let surrounding = ProcessEnvironment.all["TRACEPARENT"].flatMap {
    TraceContext(traceparent: $0, tracestate: ProcessEnvironment.all["TRACESTATE"])
  }

  /// The same task, submitted in the span of the environment, unless it names one.
  var withTrace: TaskSpec {
    guard let trace = Self.surrounding, traceparent == nil else { return self }
    var spec = self
    spec.trace = trace
    return spec
  }
}
