import ReelhaulDigest
import Testing

@Suite struct Base64Tests {
  /// RFC 4648, 10.
  @Test(
    "the vectors of RFC 4648",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"), ("user:pässword", "dXNlcjpww6Rzc3dvcmQ="),
    ])
  func vectors(_ text: String, _ encoded: String) {
    #expect(Base64.encode(text.utf8) == encoded)
  }

  @Test("no length runs past the text's room", arguments: 0...300)
  func anyLength(_ count: Int) {
    let text = Base64.encode((0..<count).map { UInt8(truncatingIfNeeded: $0 * 7) })
    #expect(text.utf8.count == (count + 2) / 3 * 4)
    #expect(text.utf8.suffix(2).filter { $0 == UInt8(ascii: "=") }.count == (3 - count % 3) % 3)
  }
}
