import ReelhaulCodec
import ReelhaulDigest
import Testing

@Suite struct DigestTests {
  @Test(
    "SHA-256 of known texts",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      ("message digest", "f7846f55cf23e14eebeab5b4e1550cad5b509e3348fbc4efa3a1413d393cb650"),
    ])
  func sha256(text: String, expected: String) {
    #expect(Hex.encode(digest(.sha256, of: text.utf8)) == expected)
  }

  @Test(
    "MD5 of known texts",
    arguments: [
      ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
    ])
  func md5(text: String, expected: String) {
    #expect(Hex.encode(digest(.md5, of: text.utf8)) == expected)
  }

  @Test("a digest of pieces equals the digest of the whole")
  func piecesEqualTheWhole() {
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    var state = DigestState(.sha256)
    for start in stride(from: 0, to: bytes.count, by: 777) {
      bytes[start..<min(start + 777, bytes.count)].withUnsafeBytes { state.update($0) }
    }
    #expect(state.finish() == digest(.sha256, of: bytes))
  }

  @Test("a finished state starts a new digest")
  func aFinishedStateStartsAnew() {
    var state = DigestState(.sha256)
    [UInt8](repeating: 1, count: 10).withUnsafeBytes { state.update($0) }
    _ = state.finish()
    #expect(state.finish() == digest(.sha256, of: []))
  }
}
