import ReelhaulCodec
import Testing

@Suite struct FNV1aTests {
  @Test(
    "the hash is FNV-1a: databases hold values of it",
    arguments: [
      ("", 0xcbf2_9ce4_8422_2325 as UInt64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ])
  func isFNV1a(_ text: String, _ value: UInt64) {
    #expect(FNV1a(text.utf8).value == value)
  }

  @Test("a number is its eight bytes, the lowest first")
  func numbersAreBytes() {
    var hash = FNV1a()
    hash.combine(0x0102 as UInt64)
    #expect(hash.value == FNV1a("\u{2}\u{1}\0\0\0\0\0\0".utf8).value)
  }
}
