import HTTPServer
import ReelhaulCodec
import ReelhaulDigest

/// Entity tags, RFC 9110, 8.8.3: `"HASH"`, of a task `"SEQUENCE-HASH"`, and of a compressed answer with `+gzip`.
enum EntityTag {
  private static let gzip = "+gzip"

  static func of(_ bytes: [UInt8], sequence: Int? = nil) -> String {
    let hash = Hex.encode(Array(digest(.sha256, of: bytes).prefix(12)))
    return sequence.map { "\"\($0)-\(hash)\"" } ?? "\"\(hash)\""
  }

  static func compressed(_ tag: String) -> String { tag.dropLast() + gzip + "\"" }

  /// Whether a client that sends this `If-None-Match` has what `tag` names, in whatever coding.
  static func isKnown(_ tag: String, in field: String?) -> Bool {
    list(field).contains { $0 == "*" || plain($0) == tag }
  }

  /// Whether `If-Match` names the state of a task: its sequence, because progress alone changes nothing that a command
  /// depends on. True without the field.
  static func matches(_ field: String?, sequence: Int) -> Bool {
    guard let field else { return true }
    return list(field).contains { tag in
      tag == "*" || (tag.hasPrefix("\"") && tag.dropFirst().prefix { $0 != "-" && $0 != "\"" } == "\(sequence)")
    }
  }

  /// Whether the field is as the description has it.
  static func isPlausible(_ field: String?) -> Bool {
    field.map { 1...255 ~= $0.utf8.count && $0.utf8.allSatisfy { 0x21...0x7E ~= $0 } } ?? false
  }

  private static func list(_ field: String?) -> [String] {
    field?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
  }

  private static func plain(_ tag: String) -> String {
    var tag = tag
    if tag.hasPrefix("W/") { tag.removeFirst(2) }
    if tag.hasSuffix(gzip + "\"") { tag = tag.dropLast(gzip.count + 1) + "\"" }
    return tag
  }
}
