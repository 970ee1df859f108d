import ReelhaulSystem
import TaskCore

/// Takes what may be a secret out of the words that a program wrote about its failure.
enum SecretRedaction {
  private static let mark = "[…]"

  /// One line of at most 300 characters from what the program wrote to standard error.
  ///
  /// Left out are its arguments, what it has printed to standard output, the values of environment variables whose names
  /// suggest secrets, and words that look random.
  static func line(
    of output: ProgramOutput, words: [String], environment: [String: String] = ProcessEnvironment.all
  ) -> String {
    let printed = String(decoding: output.output, as: UTF8.self).split { " \t\r\n\"',:{}[]".contains($0) }.map(
      String.init)
    let variables = environment.filter { HeaderField(name: $0.key, value: "").isSecret }.map(\.value)
    let secrets = Set(words.dropFirst() + printed + variables).filter { $0.utf8.count >= 6 }
    var text = String(decoding: output.errors, as: UTF8.self)
    // Longer ones first, because one may be a part of another.
    for secret in secrets.sorted(by: { $0.utf8.count > $1.utf8.count }) {
      text = text.split(separator: secret, omittingEmptySubsequences: false).joined(separator: mark)
    }
    let line = text.split { $0.isWhitespace || $0.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } }
      .map { hidingRandom($0) }.joined(separator: " ")
    return line.count > 300 ? "\(line.prefix(300))…" : line
  }

  /// Replaces runs of at least 20 letters and digits of all kinds, as keys and tokens are.
  private static func hidingRandom(_ word: Substring) -> String {
    var output = ""
    var run = ""
    func flushed() -> String {
      let isRandom =
        run.utf8.count >= 20 && run.contains(where: \.isNumber) && run.contains(where: \.isUppercase)
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
}
