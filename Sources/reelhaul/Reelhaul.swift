import CommandLineKit
import Glibc
import ReelhaulSystem
import WorkerOptions

/// The program: reads its command line, runs the command, and ends with its exit code.
@main
struct Reelhaul {
  static func main() async {
    // Set before anything writes: when a peer hangs up, the write must fail instead of ending the process.
    signal(SIGPIPE, SIG_IGN)
    ChildProcess.keepExits()
    StandardStream.openAll()
    let code = await run(Array(CommandLine.arguments.dropFirst()), environment: ProcessEnvironment.all)
    // Not exit(): it would unload the libraries while their threads still run, for example libuv's thread for signals.
    // Then the process would sometimes end by a signal instead of with its exit code.
    fflush(nil)
    _exit(code.rawValue)
  }

  /// Swift would replace invalid bytes, and the word would name something else.
  private static func checkEncoding() throws(UsageError) {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let word = CommandLine.unsafeArgv[index], String(validatingCString: word) == nil else { continue }
      throw UsageError("word \(index) of the command line is not UTF-8: \"\(String(cString: word))\"")
    }
    try ProcessEnvironment.check()
  }

  private static func run(_ words: [String], environment: [String: String]) async -> ExitCode {
    do {
      try checkEncoding()
      let file = Result { try SettingsLoader.load(words, environment: environment) }
      let settings = (try? file.get()) ?? Settings(environment: environment)
      switch try CommandParser(Program.spec, settings: settings).parse(words) {
      case .version: Output.standard.line("\(Program.spec.name) \(Program.version)")
      case .help(let command, let path): help(command, path, environment)
      case .run(let arguments):
        // Completions read no settings, and each start of a shell asks for them.
        if arguments.path != [Subcommand.completions.spec.name] { _ = try file.get() }
        return try await Program.run(Context(arguments, environment: environment))
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
    // The message may contain the end of a log.
    let message = failure.message.split(separator: "\n").map { DisplayWidth.printable(String($0)) }.joined(
      separator: "\n")
    Output.error.line("\(paint(.red, "error:")) \(message)" + (failure.hint.map { "\n\($0)" } ?? ""))
    return failure.code
  }
}
