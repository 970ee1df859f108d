/// Reads one JSON value (RFC 8259) straight from borrowed bytes, in one pass and without a tree.
///
/// The caller pulls what it expects: `try reader.object { reader, name in switch name { case "id": … } }`.
/// Stricter than most: a name may appear once in an object that is read, nothing may follow the value, and depth,
/// members and lengths have limits. An object's members whose value is `null` count as absent.
package struct JSONReader: ~Copyable {
  package static let depthLimit = 32
  /// Members of an object that is read; it bounds the search for duplicates. What is skipped is not counted.
  package static let memberLimit = 256

  let bytes: UnsafeBufferPointer<UInt8>
  /// The offset of the next unread byte.
  package internal(set) var position = 0
  /// The offset at which the value read last began; ``invalid(_:)`` points there.
  var valueStart = 0
  var depth = 0
  /// Whether ``object(known:withNulls:_:)`` refuses other names than the known ones.
  package let refusesUnknownNames: Bool
  /// The hashes of the names met in the objects that are open, the innermost last.
  var nameHashes: [UInt64] = []

  private init(_ bytes: UnsafeBufferPointer<UInt8>, refusesUnknownNames: Bool) {
    self.bytes = bytes
    self.refusesUnknownNames = refusesUnknownNames
  }

  /// Reads `input`, which must be one value of at most `limit` bytes and nothing else; `body` pulls that value.
  package static func read<Value>(
    _ input: UnsafeBufferPointer<UInt8>, limit: Int = 1 << 20, refusingUnknownNames: Bool = false,
    _ body: (inout JSONReader) throws(DecodingFailure) -> Value
  ) throws(DecodingFailure) -> Value {
    guard input.count <= limit else { throw DecodingFailure(.inputTooLong(limit: limit), offset: limit) }
    if let offset = input.firstInvalidUTF8() { throw DecodingFailure(.invalidUTF8, offset: offset) }
    var reader = JSONReader(input, refusesUnknownNames: refusingUnknownNames)
    reader.skipWhitespace()
    guard reader.position < input.count else { throw DecodingFailure(.emptyInput, offset: reader.position) }
    let value = try body(&reader)
    reader.skipWhitespace()
    guard reader.position == input.count else { throw reader.failure(.trailingBytes) }
    return value
  }

  package static func read<Value>(
    _ input: [UInt8], limit: Int = 1 << 20, refusingUnknownNames: Bool = false,
    _ body: (inout JSONReader) throws(DecodingFailure) -> Value
  ) throws(DecodingFailure) -> Value {
    try input.withUnsafeBufferPointer { bytes throws(DecodingFailure) in
      try read(bytes, limit: limit, refusingUnknownNames: refusingUnknownNames, body)
    }
  }

  /// A failure at the next unread byte.
  package func failure(_ problem: DecodingFailure.Problem) -> DecodingFailure {
    DecodingFailure(problem, offset: position)
  }

  /// A failure at the value read last: well-formed, but `message` says what it should have been.
  package func invalid(_ message: String) -> DecodingFailure {
    DecodingFailure(.invalidValue(message), offset: valueStart)
  }

  /// A failure of the object read last: it lacks `name`.
  package func missing(_ name: String) -> DecodingFailure {
    DecodingFailure(.missing(name), offset: max(0, position - 1))
  }

  // MARK: Bytes

  mutating func skipWhitespace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// The next byte that is not white space, left unread.
  mutating func peek() throws(DecodingFailure) -> UInt8 {
    skipWhitespace()
    guard position < bytes.count else { throw failure(.unexpectedEnd) }
    return bytes[position]
  }

  /// The first byte of a value, which stays unread. Remembers where the value begins.
  mutating func begin() throws(DecodingFailure) -> UInt8 {
    let byte = try peek()
    valueStart = position
    return byte
  }

  /// Consumes `word` if the unread bytes begin with it.
  mutating func take(_ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { return false }
    for index in 0..<count where bytes[position + index] != word.utf8Start[index] { return false }
    position += count
    return true
  }

  // MARK: Literals

  package mutating func bool() throws(DecodingFailure) -> Bool {
    switch try begin() {
    case UInt8(ascii: "t") where take("true"): return true
    case UInt8(ascii: "f") where take("false"): return false
    default: throw failure(.expected("true or false"))
    }
  }

  /// Consumes `null` and answers true, or answers false and consumes nothing.
  package mutating func null() throws(DecodingFailure) -> Bool {
    guard try begin() == UInt8(ascii: "n") else { return false }
    guard take("null") else { throw failure(.expected("a value")) }
    return true
  }
}
