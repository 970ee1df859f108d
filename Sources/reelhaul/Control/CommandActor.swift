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
  var withActor: Command {
    guard case .control(var control) = self else { return self }
    control.actor = control.actor ?? CommandActor.name
    return .control(control)
  }
}
