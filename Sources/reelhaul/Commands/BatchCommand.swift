import CommandLineKit
import ReelhaulClient
import TaskCore
import WorkerOptions

extension Subcommand {
  static let batch = Subcommand(
    CommandSpec(
      name: "batch", summary: "Send many commands, one JSON object a line",
      discussion: """
        A line is a task (its id is optional) or a whole command. The ids are printed in order, once Kafka has the \
        commands. Wrong lines, and lines with unknown fields, are named with their number and left out. With --strict \
        nothing is sent unless every line is correct: the input is read twice, and input from a pipe is kept in a \
        temporary file (in TMPDIR) until then.

        A task's fields: \(TaskField.overview). Here rate is a \
        limit, as --rate of 'reelhaul download'; in the documents that other commands print it is what moves now.

        A task of a kind that is not built in is sent with a remark: it waits for a worker with a handler for this kind.

        Lines that Kafka did not acknowledge are named too, the first \(BatchRun.mostNamed) of a block with their ids. They may \
        still have arrived. Sending a line again is safe with its id.

        On Ctrl-C or SIGTERM it reads no further, waits until Kafka has what was sent, prints the ids and how many lines \
        these are, and ends with 130 or 143. A second signal ends it at once.
        """,
      options: [.strict, .kafka, .topicPrefix],
      positionals: [PositionalSpec("FILE", kind: .file, help: "a file of JSON lines, or - for standard input")],
      examples: [
        Example("reelhaul batch tasks.jsonl", "Submit a file of tasks"),
        Example(#"echo '{"source":"https://example.com/a.mp4"}' | reelhaul batch -"#, "One task is enough"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { @MainActor context in
    let input = try BatchInput(context.arguments.positionals[0])
    // A broker that dies is replaced within seconds, so a batch waits. A broker that never answered is reported at
    // once.
    let client = try Fleet.client(context.arguments, kafkaPatience: "60000")
    var run = BatchRun(client, context, isStrict: context.arguments[flag: .strict])
    do {
      try await Fleet.reachKafka(context.arguments)
      let stop = StopSignal()
      await stop.listening()
      input.isStopped = { stop.hasCome }
      try await run.run(input)
      if stop.hasCome {
        await client.close()
        context.note("Interrupted: \(run.summary).")
        stop.end()
      }
    } catch {
      await client.close(within: .zero)
      if let last = run.lastRead {
        context.note("\(run.summary). What comes after line \(last) was not read, and not sent.")
      }
      throw error
    }
    await client.close()
    if let error = run.unprinted {
      throw CommandFailure(.failed, "the lines were sent, but not all of their ids could be printed: \(error)")
    }
    guard run.bad == 0 else {
      throw CommandFailure(.usage, run.summary)
    }
    return .done
  }
}

extension TaskField {
  /// The names of all fields, as help lists them: `id, kind, …, expect {sha256, md5, bytes}, …`.
  static var overview: String {
    var words: [String] = []
    for field in all {
      var word = "\(field.name)"
      if case .seconds = field.value { word += " (a list of seconds)" }
      if case .json = field.value { word += " (any JSON)" }
      if let object = field.object {
        if let last = words.last, last.hasPrefix("\(object) {") {
          words[words.count - 1] = "\(last.dropLast()), \(word)}"
          continue
        }
        word = "\(object) {\(word)}"
      }
      words.append(word)
    }
    return words.joined(separator: ", ")
  }
}

extension OptionSpec {
  fileprivate static let strict = OptionSpec("strict", .flag, help: "Send nothing unless every line is correct")
}
