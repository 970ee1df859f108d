import ReelhaulCodec

/// The allowed values of an option or a positional.
package enum ValueKind: Sendable, Hashable {
  /// A flag that is present or not, without a value.
  case flag
  case text
  case integer(ClosedRange<Int64>)
  /// A number of bytes: `500`, `10MiB`, `1.5GB`.
  case bytes
  case choice([String])
  /// Completions offer these words. Other words are allowed too; the code that reads the value checks them.
  case words([String])
  /// A path that completions complete.
  case file
  case directory

  var placeholder: String {
    switch self {
    case .flag: ""
    case .text, .words: "TEXT"
    case .integer: "N"
    case .bytes: "BYTES"
    case .choice(let choices): choices.joined(separator: "|")
    case .file: "FILE"
    case .directory: "DIR"
    }
  }

  /// Why `text` is not a valid value, as the end of a sentence that begins with its name; nil if it is valid.
  func complaint(about text: String) -> String? {
    switch self {
    case .flag, .text, .words: nil
    case .file, .directory: text.isEmpty ? "must not be empty" : nil
    case .integer(let range):
      if let number = Int64(text) {
        range.contains(number) ? nil : "must be \(Self.describe(range)), not \(number)"
      } else {
        "must be a whole number, not \"\(text)\""
      }
    case .bytes:
      ByteCount(text) == nil ? "must be a number of bytes such as 500, 10MiB or 1.5GB, not \"\(text)\"" : nil
    case .choice(let choices):
      choices.contains(text)
        ? nil
        : "must be \(Self.list(choices)), not \"\(text)\""
          + (Suggestion.nearest(to: text, in: choices).map { "; did you mean \($0)?" } ?? "")
    }
  }

  static func list(_ words: [String]) -> String {
    guard let last = words.last, words.count > 1 else { return words.joined() }
    return words.dropLast().joined(separator: ", ") + " or " + last
  }

  private static func describe(_ range: ClosedRange<Int64>) -> String {
    switch (range.lowerBound, range.upperBound) {
    case (.min, let upper): "at most \(upper)"
    case (let lower, .max): "at least \(lower)"
    case (let lower, let upper): "from \(lower) to \(upper)"
    }
  }
}
