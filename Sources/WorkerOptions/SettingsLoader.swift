import CommandLineKit
import Glibc
import ReelhaulSystem

extension ProcessEnvironment {
  /// Throws if a setting would have another value than it should.
  package static func check() throws(UsageError) {
    guard let name = unreadable.first(where: { $0.hasPrefix("REELHAUL_") }) else { return }
    throw UsageError("the value of \(name) is not UTF-8")
  }
}

/// Finds the settings file before anything else is read: `--config`, or else `REELHAUL_CONFIG`, or else none.
package enum SettingsLoader {
  package static func load(_ words: [String], environment: [String: String]) throws -> Settings {
    let named = path(in: words) ?? environment["REELHAUL_CONFIG"]
    guard let path = named, !path.isEmpty else { return Settings(environment: environment) }
    let bytes: [UInt8]
    do {
      bytes = try TextFile.bytes(of: path)
    } catch {
      throw UsageError("the settings file cannot be read: \(error)", hint: "Check --config and REELHAUL_CONFIG.")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw UsageError("\(path) is not UTF-8") }
    do {
      return Settings(environment: environment, file: try SettingsFile.parse(text))
    } catch {
      throw UsageError("\(path): \(error.message)", hint: error.hint)
    }
  }

  private static func path(in words: [String]) -> String? {
    let words = words.prefix { $0 != "--" }
    let flag = OptionSpec.config.spelling
    for (index, word) in words.enumerated() {
      if word == flag, index + 1 < words.count { return words[index + 1] }
      if word.hasPrefix(flag + "=") { return String(word.dropFirst(flag.count + 1)) }
    }
    return nil
  }
}
