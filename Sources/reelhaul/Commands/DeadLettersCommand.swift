import CommandLineKit
import ControlAPI
import ReelhaulClient
import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let deadLetters = Subcommand(
    CommandSpec(
      name: "dead-letters", summary: "List, replay or drop commands that could not be applied",
      discussion: """
        Commands that cannot be read, or that the state of their task does not allow, go to the topic 'dead-letters' \
        unchanged. 'list' shows those about which nothing was done, the newest first, 'list ID' one of them with its \
        whole text. 'replay ID' sends it again, or with --command a corrected one; doing so twice changes nothing. \
        'drop ID' hides it. Kafka keeps all of them as long as the topic does.
        """,
      options: [.letters, .correction, .json] + OptionSpec.producing,
      positionals: [
        PositionalSpec("ACTION", .optional, kind: .choice(["list", "replay", "drop"]), help: "list, replay or drop"),
        PositionalSpec("ID", .many, help: "PARTITION-OFFSET, as 'list' shows it"),
      ],
      examples: [
        Example("reelhaul dead-letters", "Which commands were refused, and why"),
        Example("reelhaul dead-letters replay 2-4711", "Send one again"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let words = context.arguments.positionals
    let (action, names) = (words.first ?? "list", Array(words.dropFirst()))
    let places = try names.map { name throws(UsageError) in
      guard let place = DeadLetter.place(name) else {
        throw UsageError("\"\(name)\" is no dead letter: its id is PARTITION-OFFSET, such as 2-4711")
      }
      return place
    }
    let correction = context.arguments[.correction]
    if correction != nil, action != "replay" || names.count != 1 {
      throw UsageError("--command belongs to 'replay' of one dead letter")
    }
    if action != "list" || !names.isEmpty {
      try context.arguments.refuse([.letters], "belongs to 'list' without ids")
    }
    guard action == "list" || !names.isEmpty else { throw UsageError("which ones? Give the ids that 'list' shows") }
    let reader = try DeadLetterReader(
      Fleet.kafka(context.arguments), topicPrefix: FleetSettings.topics(context.arguments).prefix)
    do {
      try await Fleet.withStore(context) { store in
        guard !names.isEmpty else { return try await list(reader, store, context) }
        if action != "list" { try await Fleet.checkBeforeChange(store) }
        // Nothing is done about any unless all are there.
        var letters: [DeadLetter] = []
        for (name, place) in zip(names, places) {
          guard let letter = try await reader.letter(place.partition, place.offset) else {
            throw CommandFailure(
              .notFound, "there is no dead letter \(name)", hint: "'reelhaul dead-letters' shows them.")
          }
          letters.append(letter)
        }
        try await act(action, letters, correction, store, context)
      }
    } catch {
      await reader.close()
      throw error
    }
    await reader.close()
    return .done
  }

  private static func list(_ reader: DeadLetterReader, _ store: any ControlStore, _ context: Context) async throws {
    let limit = Int(context.arguments.integer(.letters) ?? 100)
    let (letters, hasMore) = try await reader.newest(limit, in: store)
    if context.wantsJSON {
      context.output.documents(letters) { $0.write(to: &$1) }
    } else if letters.isEmpty {
      context.note("There are no dead letters.")
    } else {
      context.print(.letters(letters))
    }
    if hasMore { context.note("There are more: --limit may be up to \(OptionSpec.mostLetters).") }
  }

  private static func act(
    _ action: String, _ letters: [DeadLetter], _ correction: String?, _ store: any ControlStore, _ context: Context
  ) async throws {
    switch action {
    case "replay":
      let commands = try letters.map { letter throws(CommandFailure) in
        do throws(Rejection) {
          return try letter.replay(correction.map { Array($0.utf8) }, by: CommandActor.name)
        } catch {
          throw CommandFailure(
            .usage, "dead letter \(letter.name) is no command: \(error.reason)",
            hint: "Send a corrected one with --command '{…}'.")
        }
      }
      try await Fleet.send(commands, context)
      for letter in letters { try await store.mark(letter.mark, .replayed, actor: CommandActor.name) }
    case "drop":
      for letter in letters { try await store.mark(letter.mark, .dropped, actor: CommandActor.name) }
    default: break
    }
    if context.wantsJSON {
      if letters.count == 1 {
        context.output.document { letters[0].write(to: &$0) }
      } else {
        context.output.documents(letters) { $0.write(to: &$1) }
      }
    } else if action == "list" {
      for letter in letters {
        context.output.line(DisplayWidth.printable("\(letter.code): \(letter.reason)"))
        context.output.line(DisplayWidth.printable(String(decoding: letter.value, as: UTF8.self)))
      }
    }
  }
}

extension Table {
  fileprivate static func letters(_ letters: [DeadLetter]) -> Table {
    var table = Table([
      .init("ID"), .init("AT", leaves: 1), .init("CODE"), .init("TASK", leaves: 3), .init("REASON", shrinks: true),
      .init("COMMAND", shrinks: true, leaves: 2),
    ])
    for letter in letters {
      table.add([
        letter.name, letter.at.relative, letter.code, letter.taskID.map { "\($0)" } ?? "", letter.reason,
        String(decoding: letter.value.prefix(200), as: UTF8.self),
      ])
    }
    return table
  }
}

extension OptionSpec {
  fileprivate static let mostLetters: Int64 = 1000
  fileprivate static let letters = OptionSpec(
    "limit", short: "n", .integer(1...mostLetters), default: "100", help: "How many at most")
  fileprivate static let correction = OptionSpec(
    "command", .text, valueName: "JSON", help: "With replay: the corrected command, as producers write it")
}
