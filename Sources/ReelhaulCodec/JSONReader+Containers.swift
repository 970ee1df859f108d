extension JSONReader {
  /// Reads an object: `body` gets every member whose value is not `null`, and must consume the value. If the reader
  /// refuses unknown names, members that are not `known` are errors, even if they are `null`. With `withNulls`, `body`
  /// gets the members that are `null`, too.
  package mutating func object(
    known: [String]? = nil, withNulls: Bool = false,
    _ body: (inout JSONReader, JSONName) throws(DecodingFailure) -> Void
  ) throws(DecodingFailure) {
    guard try begin() == UInt8(ascii: "{") else { throw failure(.expected("an object")) }
    try descend()
    let firstName = nameHashes.count
    defer {
      depth -= 1
      nameHashes.removeSubrange(firstName...)
    }
    guard try peek() != UInt8(ascii: "}") else {
      position += 1
      return
    }
    repeat {
      let name = try memberName(after: firstName)
      do throws(DecodingFailure) {
        if refusesUnknownNames, let known, !known.contains(name.text) {
          throw failure(.unknownName(name.text, known: known))
        }
        let isPassedOver = try withNulls ? false : null()
        if !isPassedOver { try body(&self, name) }
      } catch {
        throw error.within(name.text)
      }
    } while try another(before: UInt8(ascii: "}"))
  }

  /// Reads an array: `body` gets every element's index and must consume it.
  package mutating func array(
    _ body: (inout JSONReader, Int) throws(DecodingFailure) -> Void
  ) throws(DecodingFailure) {
    guard try begin() == UInt8(ascii: "[") else { throw failure(.expected("an array")) }
    try descend()
    defer { depth -= 1 }
    guard try peek() != UInt8(ascii: "]") else {
      position += 1
      return
    }
    var index = 0
    repeat {
      do throws(DecodingFailure) {
        try body(&self, index)
      } catch {
        throw error.within("[\(index)]")
      }
      index += 1
    } while try another(before: UInt8(ascii: "]"))
  }

  /// The member `wanted` of the next object; nil if it is absent. The object stays unread.
  package mutating func peek(_ wanted: StaticString) throws(DecodingFailure) -> String? {
    let start = position
    var value: String?
    try object { reader, name throws(DecodingFailure) in
      if wanted ~= name { value = try reader.string(limit: 64) } else { try reader.skip() }
    }
    position = start
    return value
  }

  /// Consumes a value of any kind; its syntax is checked, its names may repeat. It may nest to ``depthLimit`` by itself:
  /// what is read in one document can be read in every other that carries it.
  package mutating func skip() throws(DecodingFailure) {
    let outside = depth
    depth = 0
    defer { depth = outside }
    try skipValue()
  }

  private mutating func skipValue() throws(DecodingFailure) {
    switch try begin() {
    case UInt8(ascii: "{"):
      try descend()
      if try peek() == UInt8(ascii: "}") {
        position += 1
      } else {
        repeat {
          guard try peek() == UInt8(ascii: "\"") else { throw failure(.expected("a name in quotes")) }
          _ = try rawString()
          try colon()
          try skipValue()
        } while try another(before: UInt8(ascii: "}"))
      }
      depth -= 1
    case UInt8(ascii: "["):
      try descend()
      if try peek() == UInt8(ascii: "]") {
        position += 1
      } else {
        repeat { try skipValue() } while try another(before: UInt8(ascii: "]"))
      }
      depth -= 1
    case UInt8(ascii: "\""): _ = try rawString()
    case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try bool()
    case UInt8(ascii: "n"): _ = try null()
    default: _ = try rawNumber()
    }
  }

  /// Reads a value of any kind as its text, without the white space between tokens. Line breaks would end a line of JSON
  /// lines, and two texts that differ only in white space are the same value. It may nest as deep as with ``skip()``.
  package mutating func raw() throws(DecodingFailure) -> [UInt8] {
    _ = try begin()
    let start = position
    try skip()
    let text = bytes[start..<position]
    guard text.contains(where: { $0 <= 0x20 }) else { return Array(text) }
    var compact: [UInt8] = []
    compact.reserveCapacity(text.count)
    var isInString = false
    var isEscaped = false
    for byte in text {
      guard isInString || byte > 0x20 else { continue }
      compact.append(byte)
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInString.toggle()
      }
    }
    return compact
  }

  /// Consumes the bracket that opens a container.
  private mutating func descend() throws(DecodingFailure) {
    guard depth < Self.depthLimit else { throw failure(.tooDeep(limit: Self.depthLimit)) }
    depth += 1
    position += 1
  }

  private mutating func colon() throws(DecodingFailure) {
    guard try peek() == UInt8(ascii: ":") else { throw failure(.expected("a colon")) }
    position += 1
  }

  /// Consumes a comma (true: another element follows) or `end` (false).
  private mutating func another(before end: UInt8) throws(DecodingFailure) -> Bool {
    let byte = try peek()
    guard byte == UInt8(ascii: ",") || byte == end else {
      throw failure(.expected("a comma or \(Character(Unicode.Scalar(end)))"))
    }
    position += 1
    return byte != end
  }

  private mutating func memberName(after firstName: Int) throws(DecodingFailure) -> JSONName {
    guard try peek() == UInt8(ascii: "\"") else { throw failure(.expected("a name in quotes")) }
    let start = position
    let raw = try rawString()
    let name =
      raw.isEscaped
      ? JSONName(unescaped: unescape(raw)) : JSONName(borrowed: UnsafeBufferPointer(rebasing: bytes[raw.range]))
    // Names are compared by their hashes: a collision would refuse a message, never misread one.
    let hash = name.hash
    guard !nameHashes[firstName...].contains(hash) else {
      throw DecodingFailure(.duplicateName(name.text), offset: start)
    }
    guard nameHashes.count - firstName < Self.memberLimit else {
      throw DecodingFailure(.tooManyMembers(limit: Self.memberLimit), offset: start)
    }
    nameHashes.append(hash)
    try colon()
    return name
  }
}
