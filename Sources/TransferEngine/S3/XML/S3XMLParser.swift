import ReelhaulCodec

/// Reads a store's document into elements: strictly, within limits, and without DTDs, so that no document can expand or
/// name files.
struct S3XMLParser {
  static let sizeLimit = 8 << 20
  static let depthLimit = 32
  static let elementLimit = 100_000

  private let bytes: [UInt8]
  private var position = 0

  /// The document's outermost element. UTF-8 only.
  static func read(_ bytes: [UInt8]) throws(S3XMLError) -> S3XMLElement {
    guard bytes.count <= sizeLimit else { throw S3XMLError("the document is longer than \(sizeLimit) bytes") }
    guard String(validating: bytes, as: UTF8.self) != nil else { throw S3XMLError("the document is not valid UTF-8") }
    var parser = S3XMLParser(bytes: bytes)
    return try parser.document()
  }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  private mutating func document() throws(S3XMLError) -> S3XMLElement {
    _ = take("\u{FEFF}")
    // Stores keep a connection alive with white space before the answer to a long call.
    skipSpace()
    if take("<?xml") { try declaration() }
    var open: [S3XMLElement] = []
    var text: [UInt8] = []
    var count = 0
    while position < bytes.count {
      if open.isEmpty {
        skipSpace()
        guard position < bytes.count else { break }
      }
      if take("<!--") {
        try skip(through: "-->", of: "a comment")
      } else if take("<![CDATA[") {
        guard !open.isEmpty else { throw S3XMLError("there is text outside of the document") }
        let start = position
        try skip(through: "]]>", of: "a CDATA section")
        let section = bytes[start..<(position - 3)]
        guard !section.contains(0) else { throw S3XMLError("it has the character NUL") }
        text += section
      } else if take("<!") || take("<?") {
        throw S3XMLError("the document has a DTD or an instruction, which is not read")
      } else if take("</") {
        let name = try self.name()
        skipSpace()
        guard take(">"), var closed = open.popLast(), closed.name == name else {
          throw S3XMLError("the end of an element does not match its begin")
        }
        closed.text += String(decoding: text, as: UTF8.self)
        text = []
        if open.isEmpty { return try end(closed) }
        open[open.count - 1].children.append(closed)
      } else if take("<") {
        count += 1
        guard count <= Self.elementLimit else { throw S3XMLError("the document has too many elements") }
        let (element, isEmpty) = try begin()
        guard open.count < Self.depthLimit else { throw S3XMLError("the document is nested too deeply") }
        if !open.isEmpty { open[open.count - 1].text += String(decoding: text, as: UTF8.self) }
        text = []
        if !isEmpty {
          open.append(element)
        } else if open.isEmpty {
          return try end(element)
        } else {
          open[open.count - 1].children.append(element)
        }
      } else {
        guard !open.isEmpty else { throw S3XMLError("there is text outside of the document") }
        try characters(into: &text)
      }
    }
    throw S3XMLError(open.isEmpty ? "the document is empty" : "the document ends too early")
  }

  /// Only white space and comments may follow the document.
  private mutating func end(_ root: S3XMLElement) throws(S3XMLError) -> S3XMLElement {
    skipSpace()
    while take("<!--") {
      try skip(through: "-->", of: "a comment")
      skipSpace()
    }
    guard position == bytes.count else { throw S3XMLError("something follows the document") }
    return root
  }

  /// The rest of `<?xml version="1.0" encoding="UTF-8"?>`.
  private mutating func declaration() throws(S3XMLError) {
    while true {
      let hadSpace = skipSpace()
      if take("?>") { return }
      guard hadSpace else { throw S3XMLError("the declaration is malformed") }
      let (name, value) = try attribute()
      if name == "encoding", !["utf-8", "us-ascii"].contains(value.lowercased()) {
        throw S3XMLError("the document is not UTF-8")
      }
    }
  }

  private mutating func begin() throws(S3XMLError) -> (element: S3XMLElement, isEmpty: Bool) {
    let element = S3XMLElement(name: try name())
    while true {
      let hadSpace = skipSpace()
      if take("/>") { return (element, true) }
      if take(">") { return (element, false) }
      guard hadSpace else { throw S3XMLError("a tag is malformed") }
      _ = try attribute()
    }
  }

  private mutating func attribute() throws(S3XMLError) -> (name: String, value: String) {
    let name = try self.name()
    skipSpace()
    guard take("=") else { throw S3XMLError("an attribute has no value") }
    skipSpace()
    let quote: UInt8
    if take("\"") {
      quote = UInt8(ascii: "\"")
    } else if take("'") {
      quote = UInt8(ascii: "'")
    } else {
      throw S3XMLError("the value of an attribute has no quotes")
    }
    var value: [UInt8] = []
    while position < bytes.count, bytes[position] != quote {
      guard bytes[position] != UInt8(ascii: "<") else { break }
      try character(into: &value)
    }
    guard position < bytes.count, bytes[position] == quote else {
      throw S3XMLError("the value of an attribute does not end")
    }
    position += 1
    return (name, String(decoding: value, as: UTF8.self))
  }

  /// A name, without its prefix.
  private mutating func name() throws(S3XMLError) -> String {
    let start = position
    while position < bytes.count, Self.isNameByte(bytes[position]) { position += 1 }
    let name = bytes[start..<position]
    guard let first = name.first, !Self.isNameEnd(first), name.count <= 256 else {
      throw S3XMLError("a name is malformed")
    }
    let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
    guard !local.isEmpty else { throw S3XMLError("a name is malformed") }
    return String(decoding: local, as: UTF8.self)
  }

  private mutating func characters(into text: inout [UInt8]) throws(S3XMLError) {
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") { try character(into: &text) }
  }

  private mutating func character(into text: inout [UInt8]) throws(S3XMLError) {
    let byte = bytes[position]
    switch byte {
    case 0: throw S3XMLError("it has the character NUL")
    case UInt8(ascii: "&"): text += try reference().utf8
    case 0x0D:
      // The end of a line is one line feed, however it is written.
      position += position + 1 < bytes.count && bytes[position + 1] == 0x0A ? 2 : 1
      text.append(0x0A)
    default:
      position += 1
      text.append(byte)
    }
  }

  /// `&amp;`, `&#65;` or `&#x41;`. XML 1.0 forbids most control characters even so, but keys may have them.
  private mutating func reference() throws(S3XMLError) -> String {
    guard let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else {
      throw S3XMLError("a reference is malformed")
    }
    let name = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
    position = end + 1
    switch name {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let isHexadecimal = name.hasPrefix("#x")
      let digits = name.dropFirst(isHexadecimal ? 2 : 1)
      guard name.hasPrefix("#"), digits.utf8.allSatisfy({ Hex.value(of: $0) != nil }),
        let number = UInt32(digits, radix: isHexadecimal ? 16 : 10), number > 0, let scalar = Unicode.Scalar(number)
      else { throw S3XMLError("a reference is malformed, or names what is not there without a DTD") }
      return String(Character(scalar))
    }
  }

  // MARK: Bytes

  @discardableResult
  private mutating func skipSpace() -> Bool {
    let start = position
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    return position > start
  }

  private mutating func skip(through end: StaticString, of what: String) throws(S3XMLError) {
    while position < bytes.count {
      if take(end) { return }
      position += 1
    }
    throw S3XMLError("\(what) does not end")
  }

  /// Consumes `word` if the unread bytes begin with it.
  private mutating func take(_ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { return false }
    for index in 0..<count where bytes[position + index] != word.utf8Start[index] { return false }
    position += count
    return true
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
      true
    default: "-._:".utf8.contains(byte)
    }
  }

  /// Whether a name may have the byte, but not begin with it.
  private static func isNameEnd(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-.".utf8.contains(byte)
  }
}

/// Why a document of a store cannot be read. Of the document it shows at most names.
package struct S3XMLError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}
