/// Writes JSON into a byte array and adds the commas.
///
/// `json.object { $0.member("id", id); $0.member("rate", rate) }`
package struct JSONWriter: ~Copyable {
  private var memory: UnsafeMutableBufferPointer<UInt8>
  private var count = 0
  private var needsComma = false

  private init(capacity: Int) {
    memory = .allocate(capacity: capacity)
  }

  deinit { memory.deallocate() }

  /// The bytes of the value that `body` writes. `capacity` is the expected number of bytes.
  package static func write(capacity: Int = 512, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter(capacity: max(capacity, 16))
    body(&writer)
    return Array(writer.memory[..<writer.count])
  }

  // MARK: Containers

  package mutating func object(_ members: (inout JSONWriter) -> Void) {
    open(UInt8(ascii: "{"))
    members(&self)
    close(UInt8(ascii: "}"))
  }

  package mutating func array(_ elements: (inout JSONWriter) -> Void) {
    open(UInt8(ascii: "["))
    elements(&self)
    close(UInt8(ascii: "]"))
  }

  /// Writes the name of the next member. The name must be ASCII without characters that need escapes.
  package mutating func name(_ name: StaticString) {
    beginValue()
    append(UInt8(ascii: "\""))
    append(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    append(UInt8(ascii: "\""))
    append(UInt8(ascii: ":"))
    needsComma = false
  }

  package mutating func name(_ name: String) {
    string(name)
    append(UInt8(ascii: ":"))
    needsComma = false
  }

  // MARK: Values

  package mutating func string(_ value: String) {
    beginValue()
    append(UInt8(ascii: "\""))
    var value = value
    value.withUTF8 { appendEscaped($0) }
    append(UInt8(ascii: "\""))
  }

  /// Writes a string of at most `capacity` ASCII characters without escapes. `body` writes them and returns their
  /// number.
  package mutating func ascii(_ capacity: Int, _ body: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    beginValue()
    append(UInt8(ascii: "\""))
    reserve(capacity)
    count += body(UnsafeMutableBufferPointer(rebasing: memory[count..<count + capacity]))
    append(UInt8(ascii: "\""))
  }

  package mutating func integer(_ value: Int) {
    integer(Int64(value))
  }

  package mutating func integer(_ value: Int64) {
    beginValue()
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { buffer in
      var first = buffer.count
      var rest = value.magnitude
      repeat {
        first -= 1
        buffer[first] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        first -= 1
        buffer[first] = UInt8(ascii: "-")
      }
      append(UnsafeBufferPointer(rebasing: buffer[first...]))
    }
  }

  /// Writes a finite number. Infinities and NaN become `null`, because JSON has no form for them.
  package mutating func double(_ value: Double) {
    beginValue()
    append(value.isFinite ? value.description : "null")
  }

  package mutating func bool(_ value: Bool) {
    beginValue()
    append(value ? "true" : "false")
  }

  package mutating func null() {
    beginValue()
    append("null")
  }

  /// Writes a value that is already encoded as JSON.
  package mutating func raw(_ json: [UInt8]) {
    beginValue()
    json.withUnsafeBufferPointer { append($0) }
  }

  // MARK: Bytes

  private mutating func beginValue() {
    if needsComma { append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func open(_ bracket: UInt8) {
    beginValue()
    append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    append(bracket)
    needsComma = true
  }

  private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
    var clean = 0
    for index in text.indices {
      let byte = text[index]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      append(UnsafeBufferPointer(rebasing: text[clean..<index]))
      clean = index + 1
      append(UInt8(ascii: "\\"))
      switch byte {
      case 0x0A: append(UInt8(ascii: "n"))
      case 0x0D: append(UInt8(ascii: "r"))
      case 0x09: append(UInt8(ascii: "t"))
      // The short escapes are never longer than the input was.
      case 0x08: append(UInt8(ascii: "b"))
      case 0x0C: append(UInt8(ascii: "f"))
      case 0..<0x20:
        append("u00")
        append(Hex.digit(byte >> 4))
        append(Hex.digit(byte & 15))
      default: append(byte)
      }
    }
    append(UnsafeBufferPointer(rebasing: text[clean...]))
  }

  private mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append($0) }
  }

  private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    reserve(bytes.count)
    _ = UnsafeMutableBufferPointer(rebasing: memory[count...]).update(fromContentsOf: bytes)
    count += bytes.count
  }

  private mutating func append(_ byte: UInt8) {
    reserve(1)
    memory[count] = byte
    count += 1
  }

  /// Makes room for `more` bytes.
  private mutating func reserve(_ more: Int) {
    guard memory.count - count < more else { return }
    let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(2 * memory.count, count + more))
    _ = larger.update(fromContentsOf: memory[..<count])
    memory.deallocate()
    memory = larger
  }
}
