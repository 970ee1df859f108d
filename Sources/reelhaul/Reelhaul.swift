import CommandLineKit
import Glibc
import System

/// The program: reads its command line, runs the command, ends with its exit code.
@main
struct Reelhaul {
  static func main() async {
    // Before anything writes: a peer that hangs up must be an error of that write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    let code = await run(Array(CommandLine.arguments.dropFirst()), environment: ProcessEnvironment.all)
    exit(code.rawValue)
  }

  private static func run(_ words: [String], environment: [String: String]) async -> ExitCode {
    do {
      let settings = try SettingsLoader.load(words, environment: environment)
      switch try CommandParser(Program.spec, settings: settings).parse(words) {
      case .version: Output.standard.line("\(Program.spec.name) \(Program.version)")
      case .help(let command, let path): help(command, path, environment)
      case .run(let arguments): return try await Program.run(Context(arguments, environment: environment))
      }
      return .done
    } catch {
      return report(CommandFailure(error), environment)
    }
  }

  private static func help(_ command: CommandSpec, _ path: [String], _ environment: [String: String]) {
    let terminal = Terminal(descriptor: STDOUT_FILENO, environment: environment)
    let help = HelpText(
      command, path: path, inherited: Program.spec.options, width: terminal.width, paint: terminal.paint)
    Output.standard.write(help.render())
  }

  private static func report(_ failure: CommandFailure, _ environment: [String: String]) -> ExitCode {
    let paint = Terminal(descriptor: STDERR_FILENO, environment: environment).paint
    Output.error.line(
      "\(paint(.red, "error:")) \(DisplayWidth.printable(failure.message))" + (failure.hint.map { "\n\($0)" } ?? ""))
    return failure.code
  }
}
