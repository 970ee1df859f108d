/// Writes JSON into a byte array; commas come by themselves.
///
/// `json.object { $0.member("id", id); $0.member("rate", rate) }`
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []
  private var needsComma = false

  package init(capacity: Int = 512) {
    bytes.reserveCapacity(capacity)
  }

  /// The bytes of one value written by `body`.
  package static func write(capacity: Int = 512, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter(capacity: capacity)
    body(&writer)
    return writer.bytes
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

  /// The name of the member whose value is written next; ASCII that needs no escapes.
  package mutating func name(_ name: StaticString) {
    beginValue()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  package mutating func name(_ name: String) {
    string(name)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  // MARK: Values

  package mutating func string(_ value: String) {
    beginValue()
    bytes.append(UInt8(ascii: "\""))
    var value = value
    value.withUTF8 { appendEscaped($0) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A string of at most `capacity` ASCII characters that need no escapes; `body` writes them and returns their number.
  package mutating func ascii(_ capacity: Int, _ body: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
    beginValue()
    bytes.append(UInt8(ascii: "\""))
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: capacity) { buffer in
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[..<body(buffer)]))
    }
    bytes.append(UInt8(ascii: "\""))
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
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[first...]))
    }
  }

  /// A finite number; what JSON cannot write (infinities, NaN) becomes `null`.
  package mutating func double(_ value: Double) {
    beginValue()
    bytes.append(contentsOf: (value.isFinite ? value.description : "null").utf8)
  }

  package mutating func bool(_ value: Bool) {
    beginValue()
    bytes.append(contentsOf: (value ? "true" : "false").utf8)
  }

  package mutating func null() {
    beginValue()
    bytes.append(contentsOf: "null".utf8)
  }

  /// A value that is JSON already.
  package mutating func raw(_ json: [UInt8]) {
    beginValue()
    bytes.append(contentsOf: json)
  }

  // MARK: Bytes

  private mutating func beginValue() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func open(_ bracket: UInt8) {
    beginValue()
    bytes.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  private mutating func appendEscaped(_ text: UnsafeBufferPointer<UInt8>) {
    var clean = 0
    for index in text.indices {
      let byte = text[index]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      bytes.append(contentsOf: text[clean..<index])
      clean = index + 1
      bytes.append(UInt8(ascii: "\\"))
      switch byte {
      case 0x0A: bytes.append(UInt8(ascii: "n"))
      case 0x0D: bytes.append(UInt8(ascii: "r"))
      case 0x09: bytes.append(UInt8(ascii: "t"))
      // Never longer than what was read.
      case 0x08: bytes.append(UInt8(ascii: "b"))
      case 0x0C: bytes.append(UInt8(ascii: "f"))
      case 0..<0x20:
        bytes.append(contentsOf: "u00".utf8)
        bytes.append(Hex.digit(byte >> 4))
        bytes.append(Hex.digit(byte & 15))
      default: bytes.append(byte)
      }
    }
    bytes.append(contentsOf: text[clean...])
  }
}
