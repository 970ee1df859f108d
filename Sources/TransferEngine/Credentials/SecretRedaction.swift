import ReelhaulSystem
import TaskCore

/// Takes what may be a secret out of the words that a program wrote about its failure.
enum SecretRedaction {
  private static let mark = "[…]"

  /// One line of at most 300 characters from what the program wrote to standard error.
  ///
  /// Left out are its arguments, what it has printed to standard output, the values of environment variables whose names
  /// suggest secrets, what ``SecretMask`` and ``URLRedaction`` hide, and words that look random.
  static func line(
    of output: ProgramOutput, words: [String], environment: [String: String] = ProcessEnvironment.all
  ) -> String {
    let printed = String(decoding: output.output, as: UTF8.self).split { " \t\r\n\"',:{}[]".contains($0) }.map(
      String.init)
    // An argument may be a line for a shell, which quotes a word of it.
    let quoted = words.dropFirst().flatMap { $0.split { " \t\r\n\"';|&<>()=".contains($0) } }.map(String.init)
      .filter { !$0.hasPrefix("-") }
    let variables = environment.filter { HeaderField(name: $0.key, value: "").isSecret }.map(\.value)
    let secrets = Set(words.dropFirst() + quoted + printed + variables).filter { $0.utf8.count >= 6 }
    var text = String(decoding: output.errors, as: UTF8.self)
    // Longer ones first, because one may be a part of another.
    for secret in secrets.sorted(by: { $0.utf8.count > $1.utf8.count }) {
      text = text.split(separator: secret, omittingEmptySubsequences: false).joined(separator: mark)
    }
    text = SecretMask.masked(text, limit: 4000, mark: mark)
    let parts = text.split { $0.isWhitespace || $0.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } }
    var isSecret = false
    let line = parts.map { part in
      defer { isSecret = announces(part) || isSecret && isScheme(part) }
      return isSecret && !isScheme(part) ? mark : hidingRandom(hidingValue(of: hidingURL(part)))
    }.joined(separator: " ")
    return line.count > 300 ? "\(line.prefix(300))…" : line
  }

  private static let names = ["password", "passwd", "secret", "token", "apikey", "api-key", "api_key", "authorization"]

  /// Whether the next word is a secret: after `password:`.
  private static func announces(_ word: Substring) -> Bool {
    let name = word.lowercased()
    return isScheme(word) || (name.hasSuffix(":") || name.hasSuffix("=")) && names.contains { name.contains($0) }
  }

  /// Whether a secret follows, as in `Authorization: Bearer …`.
  private static func isScheme(_ word: Substring) -> Bool { ["bearer", "basic"].contains(word.lowercased()) }

  /// Redacts the URL in a word.
  private static func hidingURL(_ word: Substring) -> Substring {
    word.contains("://") ? URLRedaction.redact(String(word))[...] : word
  }

  /// Replaces the value of `token=…` and the like.
  private static func hidingValue(of word: Substring) -> Substring {
    guard let end = word.firstIndex(where: { $0 == "=" || $0 == ":" }) else { return word }
    let name = word[..<end].lowercased()
    let value = word[word.index(after: end)...]
    guard !value.isEmpty, names.contains(where: { name.contains($0) }) else { return word }
    return word[...end] + mark
  }

  /// Replaces runs of at least 20 letters and digits of all kinds, as keys and tokens are.
  private static func hidingRandom(_ word: Substring) -> String {
    var output = ""
    var run = ""
    func flushed() -> String {
      let isRandom =
        run.utf8.count >= 20 && run.contains(where: \.isNumber)
        && (run.contains(where: \.isUppercase) || run.split { "+/_-.=".contains($0) }.contains { isKey($0) })
      return isRandom ? mark : run
    }
    for character in word {
      if character.isASCII, character.isLetter || character.isNumber || "+/_-.=".contains(character) {
        run.append(character)
      } else {
        output += flushed()
        output.append(character)
        run = ""
      }
    }
    return output + flushed()
  }

  /// Also of small letters only: no word of a language has digits among as many letters.
  private static func isKey(_ run: Substring) -> Bool {
    run.utf8.count >= 20 && run.contains(where: \.isNumber) && run.contains(where: \.isLetter)
  }
}
