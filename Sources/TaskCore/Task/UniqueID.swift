/// A 128-bit identifier (RFC 9562), ordered by its bytes. Identifiers of version 7 are ordered by their time of
/// creation.
public struct UniqueID: Hashable, Comparable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A version 7 UUID for `milliseconds` since 1970. Its other 74 bits come from `generator`.
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

  public static func < (a: UniqueID, b: UniqueID) -> Bool {
    (a.high, a.low) < (b.high, b.low)
  }
}

extension UniqueID: LosslessStringConvertible {
  /// Reads the 36-character form, in upper or lower case. Returns `nil` for any other text.
  public init?(_ text: String) {
    var text = text
    guard let id = text.withUTF8({ UniqueID(utf8: $0[...]) }) else { return nil }
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
    let text = UnsafeMutableRawBufferPointer(buffer)
    func put(_ digits: UInt64, at offset: Int) {
      text.storeBytes(of: digits.bigEndian, toByteOffset: offset, as: UInt64.self)
    }
    let (second, third) = (Self.digits(high), Self.digits(low >> 32))
    put(Self.digits(high >> 32), at: 0)
    // Each call writes eight digits. Four of them are moved behind a dash, and the next call overwrites the rest.
    put(second, at: 9)
    put(second << 32, at: 14)
    put(third, at: 19)
    put(third << 32, at: 24)
    put(Self.digits(low), at: 28)
    for dash in [8, 13, 18, 23] { buffer[dash] = UInt8(ascii: "-") }
    return Self.textLength
  }

  /// The eight hexadecimal digits of the lower half, one in each byte.
  private static func digits(_ half: UInt64) -> UInt64 {
    var nibbles = half & 0xFFFF_FFFF
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return nibbles + 0x3030_3030_3030_3030 + letters * UInt64(UInt8(ascii: "a") - UInt8(ascii: "0") - 10)
  }
}
