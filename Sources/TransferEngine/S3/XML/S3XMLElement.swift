import TaskCore

/// An element of a store's document. Attributes and prefixes of names are left out: stores use them differently, and
/// nothing depends on them.
package struct S3XMLElement: Hashable, Sendable {
  var name: String
  /// The text between the tags, without that of the children.
  var text = ""
  var children: [S3XMLElement] = []

  func child(_ name: String) -> S3XMLElement? { children.first { $0.name == name } }

  func children(_ name: String) -> [S3XMLElement] { children.filter { $0.name == name } }

  /// The text of a child; nil if there is none, or it is empty.
  func optional(_ name: String) -> String? {
    child(name).flatMap { $0.text.isEmpty ? nil : $0.text }
  }

  /// As ``optional(_:)``, without white space around it, which some stores write around numbers and words.
  func word(_ name: String) -> String? {
    let text = optional(name) ?? ""
    guard let first = text.firstIndex(where: { !$0.isWhitespace }),
      let last = text.lastIndex(where: { !$0.isWhitespace })
    else { return nil }
    return String(text[first...last])
  }

  func string(_ name: String) throws(S3XMLError) -> String {
    guard let text = optional(name) else { throw S3XMLError("\(self.name) has no \(name)") }
    return text
  }

  private func needed(_ name: String) throws(S3XMLError) -> String {
    guard let text = word(name) else { throw S3XMLError("\(self.name) has no \(name)") }
    return text
  }

  /// False if there is no such child.
  func bool(_ name: String) throws(S3XMLError) -> Bool {
    switch word(name)?.lowercased() {
    case "true": true
    case nil, "false": false
    default: throw S3XMLError("\(name) is neither true nor false")
    }
  }

  /// A number without a sign.
  func integer<Integer: FixedWidthInteger>(_ name: String) throws(S3XMLError) -> Integer {
    let text = try needed(name)
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let value = Integer(text) else {
      throw S3XMLError("\(name) is not a number, or too large")
    }
    return value
  }

  func timestamp(_ name: String) -> Timestamp? {
    word(name).flatMap { try? Timestamp(rfc3339: $0) }
  }

  /// An entity tag, without its quotes.
  func etag(_ name: String = "ETag") throws(S3XMLError) -> String {
    S3ETag.bare(try needed(name))
  }

  /// A key or a marker of a document that may say `encoding-type=url`.
  func key(_ name: String, isEncoded: Bool) throws(S3XMLError) -> String {
    let text = try string(name)
    guard isEncoded else { return text }
    guard let decoded = S3Encoding.decode(text) else { throw S3XMLError("\(name) is not encoded as it says") }
    return decoded
  }

  var isURLEncoded: Bool { optional("EncodingType")?.lowercased() == "url" }
}
