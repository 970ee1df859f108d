import CommandLineKit
import TaskCore
import WorkerOptions

extension Subcommand {
  static let download = Subcommand(
    CommandSpec(
      name: "download", synonyms: ["get", "fetch"], summary: "Fetch a file over HTTP, HTTPS or S3 into storage",
      discussion: """
        Submits a task and prints its id once Kafka has it. The workers fetch the file in parallel ranges, \
        continue after any interruption from the bytes on disk, verify the file and then move it to its destination. \
        Interrupting --wait ends the wait, not the task.

        With --json and without --wait, it prints the task once a worker has stored it. If PostgreSQL is not configured \
        or cannot be reached, it prints the task as it was sent, and says so. Only --wait and --after with the end of an \
        id need PostgreSQL.
        """,
      options: OptionSpec.submitting + [.wait, .json] + OptionSpec.producing,
      positionals: [PositionalSpec("URL", help: "the file to fetch: http://, https:// or s3://BUCKET/KEY")],
      examples: [
        Example("reelhaul download https://example.com/film.mp4 --label title='A film' --wait", "Fetch it and watch"),
        Example(
          "reelhaul download https://example.com/film.mp4 --to storage://default/films/a.mp4 --if-exists skip",
          "Choose the destination; do nothing if the file exists"),
        Example(
          "reelhaul download s3://films/film.mp4 --credential archive", "Fetch an object of a store"),
        Example(
          """
          reelhaul download https://example.com/film.mp4 --rate 5MiB --not-before +2h --sha256 \
          9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
          """, "Verify the file; start later and limit the rate"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused))
  ) { context in
    let spec = try await TaskSpec.of(.download, source: context.arguments.positionals[0], context).checked()
    return try await Submission(spec, context).run()
  }
}
