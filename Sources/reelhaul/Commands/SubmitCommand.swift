import CommandLineKit
import TaskCore
import WorkerOptions

extension Subcommand {
  static let submit = Subcommand(
    CommandSpec(
      name: "submit", summary: "Submit a task of any kind, such as one of your own workers",
      discussion: """
        Submits a task and prints its id once Kafka has it. A worker that has a handler for KIND carries it out; until \
        one is there, the task waits, and 'reelhaul show' says so. With --source or --to, limits of hosts and storages \
        apply to the task, and only workers that have these storages run it.
        """,
      options: [.source, .parameters] + OptionSpec.ofAnyKind + [.wait, .json] + OptionSpec.producing,
      positionals: [PositionalSpec("KIND", help: "the kind of task, as its handler names it")],
      examples: [
        Example(
          #"reelhaul submit transcode --parameters '{"video":"storage://default/a.mp4","height":720}' --wait"#,
          "Run a handler of your own"),
        Example("reelhaul submit transcode --parameters @job.json --priority 10", "Read the parameters from a file"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused))
  ) { context in
    let kind = TaskKind(rawValue: context.arguments.positionals[0])
    let spec = try await TaskSpec.of(kind, source: context.arguments[.source] ?? "", context)
      .checked(["source": OptionSpec.source.spelling])
    return try await Submission(spec, context).run()
  }

  static let delete = Subcommand(
    CommandSpec(
      name: "delete", summary: "Delete a file or a directory, wherever it is",
      discussion: """
        Submits a task and prints its id once Kafka has it. What does not exist is a success. With --sha256 or --md5 \
        (below storage:// only) or --bytes, only a file that is exactly as expected is deleted. Symbolic links are deleted, and never followed. The \
        output tells how many files and bytes were deleted.

        s3:// deletes an object, or the version after ?versionId=; with --recursive all objects whose key begins as \
        the given one, which must end with "/". https:// and http:// are asked with DELETE, tus+https:// and tus+http:// \
        to end the upload at this URL.
        """,
      options: [.recursive] + OptionSpec.deleting + [.wait, .json] + OptionSpec.producing,
      positionals: [
        PositionalSpec(
          "URL", help: "what to delete: storage://NAME/PATH, s3://BUCKET/KEY, http(s):// or tus+http(s)://")
      ],
      examples: [
        Example("reelhaul delete storage://default/talks/old.mp4 --wait", "Delete a file and wait for it"),
        Example("reelhaul delete storage://default/talks --recursive", "Delete a directory with all it holds"),
        Example(
          "reelhaul delete s3://films/2025/ --recursive --credential archive", "Delete all objects below a key"),
        Example(
          "reelhaul delete storage://default/a.mp4 --sha256 "
            + "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
          "Delete the file only if it is this one"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused))
  ) { context in
    var spec = try await TaskSpec.of(.delete, source: context.arguments.positionals[0], context)
    if context.arguments[flag: .recursive] { spec.parameters = Array(#"{"recursive":true}"#.utf8) }
    let words = ["source": "URL", "parameters.recursive": OptionSpec.recursive.spelling]
    return try await Submission(spec.checked(words), context).run()
  }
}

extension OptionSpec {
  fileprivate static let source = OptionSpec(
    "source", .text, valueName: "URL", group: "Task", help: "The URL that the task reads, if its kind has one")
  fileprivate static let recursive = OptionSpec(
    "recursive", short: "r", .flag, group: "Task", help: "Delete a directory, or a key, with all it holds")

  /// The same options as for a download, which alone has a default for its destination.
  fileprivate static let ofAnyKind = submitting.map { option in
    var option = option
    if option.name == "to" {
      option.help =
        "Where it goes, if its kind has a destination, as storage://NAME/PATH; only a download has a default"
    }
    return option
  }

  /// What a delete can be given: no destination, and nothing that only a transfer of bytes has.
  fileprivate static let deleting = submitting.filter {
    !["to", "if-exists", "rate", "allow-unframed"].contains($0.name)
  }
}
