import CommandLineKit
import Glibc
import ReelhaulClient
import System

extension Subcommand {
  static let batch = Subcommand(
    CommandSpec(
      name: "batch", summary: "Send many commands, one JSON object a line",
      discussion: """
        A line is a task (its id may be left out) or a whole command. The ids are printed in order, once Kafka has the \
        commands. Bad lines are named with their number and left out; with --strict the first one ends the batch.
        """,
      options: [.strict, .kafka, .topicPrefix],
      positionals: [PositionalSpec("FILE", kind: .file, help: "a file of JSON lines, or - for standard input")],
      examples: [
        Example("reelhaul batch tasks.jsonl", "Submit a file of tasks"),
        Example(#"echo '{"source":"https://example.com/a.mp4"}' | reelhaul batch -"#, "One task is enough"),
      ],
      exits: ExitCode.meanings(.done, .usage, .unreachable))
  ) { context in
    let file = try BatchFile(context.arguments.positionals[0])
    let client = try Fleet.client(context.arguments)
    var run = BatchRun(client, context, isStrict: context.arguments[flag: .strict])
    do {
      try await run.run(file.descriptor)
    } catch {
      await client.close(within: .zero)
      throw error
    }
    await client.close()
    guard run.bad == 0 else {
      throw CommandFailure(.usage, "\(run.sent) lines were sent, \(run.bad) are bad")
    }
    return .done
  }
}

extension OptionSpec {
  fileprivate static let strict = OptionSpec("strict", .flag, help: "Send nothing after the first bad line")
}

/// The input of a batch.
private final class BatchFile: Sendable {
  let descriptor: Int32

  init(_ path: String) throws {
    guard path != "-" else {
      descriptor = STDIN_FILENO
      return
    }
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 {
      throw CommandFailure(.usage, "\(SystemError.last("open \(path)"))")
    }
  }

  deinit {
    if descriptor != STDIN_FILENO { close(descriptor) }
  }
}
