import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct BlockSumsTests {
  private static let bytes = (0..<2500).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 5) }

  private static func sums(of bytes: [UInt8], block: Int64 = 1000, parts: Int = 7) -> BlockSums {
    let summer = BlockSummer(BlockSums(block: block))
    var rest = bytes[...]
    while !rest.isEmpty {
      rest.prefix(parts).withUnsafeBytes { summer.append($0) }
      rest = rest.dropFirst(parts)
    }
    return summer.finish()
  }

  @Test("whole blocks match those that were seen, whatever parts they came in, and no others")
  func match() {
    for (block, parts) in [(1000, 7), (1000, 1000), (1000, 2500), (2500, 1), (1250, 400)] as [(Int64, Int)] {
      let sums = Self.sums(of: Self.bytes, block: block, parts: parts)
      #expect(sums.match(Self.bytes[...], from: 0))
      let rest = Int(block)..<2500
      #expect(sums.match(Self.bytes[rest], from: block))
      for place in [0, 999, 1000, 2499] {
        var others = Self.bytes
        others[place] ^= 1
        #expect(!sums.match(others[...], from: 0))
      }
      #expect(rest.isEmpty || !sums.match(Self.bytes[rest], from: 0), "a block at another place is another one")
    }
  }

  @Test("bytes that were made to have the same CRC32C are others") func forged() {
    // A multiple of the polynomial, which leaves the sum of any bytes as it is.
    let polynomial: UInt64 = 0x1_1EDC_6F41
    var others = Self.bytes
    for bit in 0...32 where polynomial >> UInt64(32 - bit) & 1 == 1 { others[40 + bit / 8] ^= 1 << UInt8(bit % 8) }
    func crc(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { crc32c($0, continuing: 0) } }
    #expect(others != Self.bytes && crc(others) == crc(Self.bytes))
    #expect(!Self.sums(of: Self.bytes).match(others[...], from: 0))
  }

  @Test("two checks of one file have different keys and tags") func keys() {
    let (one, other) = (Self.sums(of: Self.bytes), Self.sums(of: Self.bytes))
    #expect(one.key != other.key && one.sums != other.sums)
  }

  @Test("the text of the tags is read again, and that of another file or version is not") func text() {
    let sums = Self.sums(of: Self.bytes)
    #expect(BlockSums(sums.text, block: 1000, size: 2500) == sums)
    for (block, size) in [(1000, 3001), (1000, 2000), (500, 2500), (0, 2500)] as [(Int64, Int64)] {
      #expect(BlockSums(sums.text, block: block, size: size) == nil)
    }
    #expect(BlockSums(Base64URL.encode([UInt8](repeating: 7, count: 12)), block: 1000, size: 2500) == nil)
    #expect(BlockSums("?", block: 1000, size: 2500) == nil)
  }
}
