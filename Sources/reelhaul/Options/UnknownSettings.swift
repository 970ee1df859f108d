import CommandLineKit
import ReelhaulCodec

/// Settings that carry the program's name and that nothing reads: most likely they are misspelt.
enum UnknownSettings {
  /// A sentence about each, in the order of their names.
  static func sentences(_ settings: Settings) -> [String] {
    let known = Set((Program.spec.options + Program.commands.flatMap(\.spec.options)).compactMap(\.environment))
    return settings.names(withPrefix: "REELHAUL_").sorted()
      // Properties of librdkafka, which tells of those it does not know.
      .filter { !known.contains($0) && !$0.hasPrefix("REELHAUL_KAFKA_") }
      .map { name in
        let near = Suggestion.nearest(to: name, in: known.sorted()).map { ": did you mean \($0)?" } ?? ""
        return "\(name) is not a setting of reelhaul\(near)"
      }
  }

  /// A sentence about those of a worker that are given and that `workers`, the environment of a fleet's, does not follow.
  static func unfollowed(_ settings: Settings, _ workers: [String: String]) -> String? {
    let names = Subcommand.worker.spec.options.compactMap(\.environment) + settings.names(withPrefix: "REELHAUL_KAFKA_")
    let unfollowed = Set(names).filter { name in
      settings[name].map { !$0.isEmpty && $0 != workers[name] } ?? false
    }
    guard !unfollowed.isEmpty else { return nil }
    return "'up' uses its own values and ignores \(unfollowed.sorted().joined(separator: ", "))."
  }
}
