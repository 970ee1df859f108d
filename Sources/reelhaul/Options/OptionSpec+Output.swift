import CommandLineKit
import WorkerOptions

extension OptionSpec {
  static let json = OptionSpec("json", .flag, group: "Output", help: "Print one JSON document")
  static let wait = OptionSpec(
    "wait", short: "w", .flag, group: "Output", help: "Wait for the task's end, with a live bar on a terminal")
  static let waitForEffect = OptionSpec(
    "wait", short: "w", .flag, help: "Wait until the fleet has carried out the command")
}
