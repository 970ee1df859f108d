import CommandLineKit
import ReelhaulCodec
import WorkerOptions

/// Finds variables that begin with the program's name and are read by nothing. Most likely they are misspelt.
enum UnknownSettings {
  /// One sentence for each of them, sorted by name.
  static func sentences(_ settings: Settings) -> [String] {
    let known = Set((Program.spec.options + Program.commands.flatMap(\.spec.options)).compactMap(\.environment))
      .union(ofClients)
    return settings.names(withPrefix: "REELHAUL_").sorted()
      // Properties of librdkafka are left out, because librdkafka reports unknown ones itself, and what is compose.yaml's.
      .filter { !known.contains($0) && !$0.hasPrefix("REELHAUL_KAFKA_") && !$0.hasPrefix("REELHAUL_COMPOSE_") }
      .map { name in
        let near = Suggestion.nearest(to: name, in: known.sorted()).map { ": did you mean \($0)?" } ?? ""
        return "\(name) is not a setting of reelhaul\(near)"
      }
  }

  /// Those of programs that use the HTTP API. `up` writes them for these.
  private static let ofClients = ["REELHAUL_API", "REELHAUL_TOKEN"]

  /// A sentence about the worker settings that are given but ignored, because `workers`, the environment of the
  /// fleet's workers, has other values.
  static func unfollowed(_ settings: Settings, _ workers: [String: String]) -> String? {
    let unfollowed = settings.ofWorkers.filter { !$1.isEmpty && $1 != workers[$0] }.keys.sorted()
    guard !unfollowed.isEmpty else { return nil }
    return "'up' uses its own values and ignores \(unfollowed.joined(separator: ", "))."
  }
}
