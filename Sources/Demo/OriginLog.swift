/// Reads the log of the demo's origin, whose lines are `/name bytes`.
enum OriginLog {
  /// The sum of bytes for each name, without its slash. Other lines are ignored.
  static func sent(_ text: String) -> [String: Int64] {
    var sums: [String: Int64] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 2, let bytes = Int64(words[1]) else { continue }
      sums[String(words[0].drop { $0 == "/" }), default: 0] += bytes
    }
    return sums
  }
}
