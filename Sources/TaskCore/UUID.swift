/// A 128-bit identifier (RFC 9562), ordered as its bytes are; a version 7 orders by its time of creation.
public struct UUID: Hashable, Comparable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A version 7 UUID for `milliseconds` since 1970, its other 74 bits from `generator`.
  public init(milliseconds: UInt64, using generator: inout some RandomNumberGenerator) {
    let random: UInt64 = generator.next()
    high = (milliseconds << 16) | 0x7000 | (random & 0x0FFF)
    low = 0x8000_0000_0000_0000 | (generator.next() & 0x3FFF_FFFF_FFFF_FFFF)
  }

  /// The same, with the system's randomness.
  public init(milliseconds: UInt64) {
    var generator = SystemRandomNumberGenerator()
    self.init(milliseconds: milliseconds, using: &generator)
  }

  public static func < (a: UUID, b: UUID) -> Bool {
    (a.high, a.low) < (b.high, b.low)
  }
}

extension UUID: LosslessStringConvertible {
  /// Reads the 36-character form, in either case; `nil` for anything else.
  public init?(_ text: String) {
    var text = text
    guard let id = text.withUTF8({ UUID(utf8: $0[...]) }) else { return nil }
    self = id
  }

  /// Reads the 36-character form from its bytes.
  public init?(utf8 text: Slice<UnsafeBufferPointer<UInt8>>) {
    guard text.count == 36 else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    var digits = 0
    for (offset, byte) in text.enumerated() {
      if offset == 8 || offset == 13 || offset == 18 || offset == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = PercentEncoding.hexDigit(byte) else { return nil }
      if digits < 16 {
        halves.0 = halves.0 << 4 | UInt64(digit)
      } else {
        halves.1 = halves.1 << 4 | UInt64(digit)
      }
      digits += 1
    }
    self.init(high: halves.0, low: halves.1)
  }

  /// The lower-case 36-character form.
  public var description: String {
    String(unsafeUninitializedCapacity: Self.textLength, initializingUTF8With: write)
  }

  /// The same as bytes.
  package var utf8: [UInt8] {
    Array(unsafeUninitializedCapacity: Self.textLength) { buffer, count in count = write(to: buffer) }
  }

  package static let textLength = 36

  /// Writes the form into `buffer`, and returns its length.
  package func write(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var next = 0
    for nibble in 0..<32 {
      if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
        buffer[next] = UInt8(ascii: "-")
        next += 1
      }
      let half = nibble < 16 ? high : low
      let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (nibble & 15))) & 15
      buffer[next] = digit < 10 ? digit + UInt8(ascii: "0") : digit - 10 + UInt8(ascii: "a")
      next += 1
    }
    return next
  }
}
