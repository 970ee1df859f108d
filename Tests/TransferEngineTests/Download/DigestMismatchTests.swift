import TaskCore
import Testing

@testable import TransferEngine

@Suite struct DigestMismatchTests {
  private static let digests = FileDigests(sha256: [7, 7], md5: [1, 1])

  @Test("a file with the expected digests has no mismatch")
  func anExpectedDigestIsNoMismatch() {
    #expect(DigestMismatch(TaskCore.Expectation(bytes: 3), nil) == nil)
    #expect(DigestMismatch(TaskCore.Expectation(), Self.digests) == nil)
    #expect(DigestMismatch(TaskCore.Expectation(sha256: [7, 7], md5: [1, 1]), Self.digests) == nil)
  }

  @Test(
    "a mismatch names the expected digest and the one found",
    arguments: [
      (TaskCore.Expectation(sha256: [8, 8]), "the file's SHA-256 is 0707, but 0808 was expected"),
      (TaskCore.Expectation(sha256: [8, 8], md5: [1, 1]), "the file's SHA-256 is 0707, but 0808 was expected"),
      (TaskCore.Expectation(sha256: [7, 7], md5: [2, 2]), "the file's MD5 is 0101, but 0202 was expected"),
    ])
  func aMismatchNamesBothDigests(expect: TaskCore.Expectation, text: String) {
    #expect(DigestMismatch(expect, Self.digests)?.description == text)
    #expect(DigestMismatch(expect, nil) != nil)
  }
}
