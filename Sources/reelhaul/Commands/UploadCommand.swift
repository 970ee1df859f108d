import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

/// The commands that submit an upload or a copy.
extension Subcommand {
  static let upload = Subcommand(
    CommandSpec(
      name: "upload", synonyms: ["put", "push", "send"], summary: "Send a file of a storage to S3, HTTP or tus",
      discussion: """
        Submits a task and prints its id once Kafka has it. A worker that has the storage sends the file. To s3:// and \
        tus+https:// it sends parts, and after any interruption goes on with what the server has; to https:// it is one \
        request. The file must not change meanwhile: a changed file is sent again from its start, and never mixed. The \
        output says where the file is, and what proved that it is the same.

        Where an S3 store is, and its keys, are in the credential. \(followUp)
        """,
      options: OptionSpec.sending(.upload),
      positionals: [PositionalSpec("SOURCE", help: "the file to send: storage://NAME/PATH")],
      examples: [
        Example(
          "reelhaul upload storage://default/talk.mp4 --to s3://films/talk.mp4 --credential archive --wait",
          "Send it and watch"),
        Example(
          "reelhaul upload storage://default/talk.mp4 --to s3://films/talk.mp4 --credential archive --part-size 64MiB "
            + "--content-type video/mp4 --metadata series=talks --if-exists skip",
          "Choose what the store keeps; do nothing if the object exists"),
        Example(
          "reelhaul upload storage://default/talk.mp4 --to tus+https://up.example.com/files/", "Send it to a tus server"
        ),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused))
  ) { context in try await send(.upload, context) }

  static let copy = Subcommand(
    CommandSpec(
      name: "copy", synonyms: ["cp"], summary: "Copy a file from anywhere to anywhere",
      discussion: """
        Submits a task and prints its id once Kafka has it. The bytes go through the worker's memory, part by part, \
        and need no disk in between. After any interruption, any worker goes on. Every part is compared with the \
        source's version, as for a download. From S3 to S3 with one credential, the store copies by itself if it can, \
        and the bytes do not come to the worker. The other rules are those of 'reelhaul upload'.

        --credential is for both ends, as far as they need one; with --to-credential it is for the source alone. The \
        options of the group Upload need a destination that is not storage://. \(followUp)
        """,
      options: OptionSpec.sending(.copy),
      positionals: [
        PositionalSpec("SOURCE", help: "the file to read: http://, https://, s3:// or storage://NAME/PATH"),
        PositionalSpec("DESTINATION", help: "where it goes: s3://, http(s)://, tus+http(s):// or storage://NAME/PATH"),
      ],
      examples: [
        Example(
          "reelhaul copy https://example.com/film.mp4 s3://films/film.mp4 --credential archive --wait",
          "Copy it without a disk, and watch"),
        Example(
          "reelhaul copy s3://films/film.mp4 s3://films/film.mp4 --credential archive --to-credential mirror",
          "Copy it to another store"),
        Example("reelhaul copy storage://default/a.mp4 storage://archive/a.mp4", "Copy it to another storage"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused))
  ) { context in try await send(.copy, context) }

  private static let followUp = """
    'reelhaul help download' says what --json prints, and what Ctrl-C does to --wait.
    """

  private static func send(_ kind: TaskKind, _ context: Context) async throws -> ExitCode {
    let spec = try await TaskSpec.of(kind, source: context.arguments.positionals[0], context)
    return try await Submission(spec.sent(by: context.arguments), context).run()
  }
}

extension TaskSpec {
  /// The upload or copy, with what only its command gives, checked.
  func sent(by arguments: Arguments) throws(UsageError) -> TaskSpec {
    var spec = self
    var words = ["source": "SOURCE"]
    if kind == .copy {
      spec.destination = arguments.positionals[1]
      words["destination"] = "DESTINATION"
    }
    spec.parameters = try UploadParameters(arguments).json
    for (field, option) in OptionSpec.ofUpload { words["parameters.\(field)"] = option.spelling }
    return try spec.checked(words)
  }
}
