import Codec
import CommandLineKit

extension Subcommand {
  static let doctor = Subcommand(
    CommandSpec(
      name: "doctor", summary: "Check everything the fleet needs, and say what to do",
      discussion: "Looks at the broker, topics, database, schema, clock, workers, storage and limits. Changes nothing.",
      options: [.json, .storage] + OptionSpec.producing,
      examples: [Example("reelhaul doctor", "After setting up, and when something is odd")],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    async let kafka = KafkaDoctor(arguments: context.arguments).examine()
    async let postgres = PostgresDoctor(arguments: context.arguments).examine()
    let findings = await kafka + postgres + MachineDoctor(arguments: context.arguments).examine()
    if context.wantsJSON {
      context.output.json(findings)
    } else {
      for finding in findings { print(finding, context) }
    }
    return findings.exitCode
  }

  private static func print(_ finding: Finding, _ context: Context) {
    let paint = context.terminal.paint
    let ink: Paint.Ink =
      switch finding.status {
      case .ok: .green
      case .warning, .skipped: .yellow
      case .failed, .unreachable: .red
      }
    let status = DisplayWidth.fit(finding.status.rawValue, to: 12)
    context.output.line(
      paint(ink, status) + DisplayWidth.fit(finding.check, to: 16) + " " + DisplayWidth.printable(finding.message))
    if let advice = finding.advice { context.output.line(String(repeating: " ", count: 29) + "→ \(advice)") }
  }
}

extension Output {
  fileprivate func json(_ findings: [Finding]) {
    document { json in
      json.array { json in
        for finding in findings {
          json.object { json in
            json.member("check", finding.check)
            json.member("status", finding.status.rawValue)
            json.member("message", finding.message)
            json.member("advice", finding.advice)
          }
        }
      }
    }
  }
}
