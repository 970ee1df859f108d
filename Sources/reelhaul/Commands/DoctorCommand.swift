import CommandLineKit
import ReelhaulCodec
import ReelhaulKafka
import TaskAdvice
import WorkerOptions

extension Subcommand {
  static let doctor = Subcommand(
    CommandSpec(
      name: "doctor", summary: "Check everything the fleet needs, and give advice",
      discussion: """
        Checks the broker, topics, waiting commands, database, its clock, schema and fleet, workers, storage, settings and their files, \
        events, web hooks, limits and open files. Changes nothing. Storage and settings are those of a worker in this environment.
        """,
      options: [.audit, .json, .storage, .caFile, .credentials] + OptionSpec.producing,
      examples: [
        Example("reelhaul doctor", "After the setup, and when something is wrong"),
        Example("reelhaul doctor --json | jq -r '.[] | select(.status != \"ok\")'", "Only the problems, for a monitor"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let arguments = context.arguments
    let topics: TopicPlan?
    var findings: [Finding] = []
    do throws(UsageError) {
      topics = try FleetSettings.topics(arguments)
    } catch {
      topics = nil
      findings.append(Finding("topics", .misconfigured, error.message))
    }
    async let kafka = KafkaDoctor(arguments: arguments, plan: topics).examine()
    async let postgres = PostgresDoctor(arguments: arguments, topicPrefix: topics?.prefix).examine()
    findings += await kafka + postgres + MachineDoctor(arguments: arguments).examine()
    if context.wantsJSON {
      context.output.documents(findings) { finding, json in
        json.object { json in
          json.member("check", finding.check)
          json.member("status", finding.status.rawValue)
          json.member("message", finding.message)
          json.member("advice", finding.advice)
        }
      }
    } else {
      let column = findings.map { DisplayWidth.of($0.check) }.max() ?? 0
      for finding in findings { print(finding, column, context) }
    }
    return findings.exitCode
  }

  private static let statusWidth = 15

  /// Prints status, check and message in columns, and the advice below the message.
  private static func print(_ finding: Finding, _ column: Int, _ context: Context) {
    let ink: Paint.Ink =
      switch finding.status {
      case .ok: .green
      case .warning, .skipped: .yellow
      case .failed, .misconfigured, .unreachable: .red
      }
    let margin = statusWidth + column + 2
    let room = context.terminal.isInteractive ? max(20, context.terminal.width - margin) : .max
    let message = TextWrap.printable(finding.message, width: room)
    let advice = finding.advice.map { TextWrap.printable("→ \($0)", width: room) } ?? []
    let head =
      context.terminal.paint(ink, DisplayWidth.fit(finding.status.rawValue, to: statusWidth))
      + DisplayWidth.fit(finding.check, to: column + 2)
    for (index, line) in (message + advice).enumerated() {
      context.output.line((index == 0 ? head : String(repeating: " ", count: margin)) + line)
    }
  }
}

extension OptionSpec {
  static let audit = OptionSpec(
    "audit", .flag, help: "Compare every counter with the rows it counts; reads all tasks, so it may take minutes")
}
