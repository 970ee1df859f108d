import Testing

@testable import TaskCore

private let strong = SourceIdentity(
  finalURL: "https://a/b", size: 10, etag: "\"x\"", lastModified: "Sat, 21 Nov 2026 14:17:26 GMT")

struct SourceIdentityTests {
  @Test("another signed URL or edge server is the same source")
  func aSignedOrSpreadURLIsTheSameSource() {
    var seen = strong
    seen.finalURL = "https://edge7/b?sig=2"
    seen.date = "Sat, 21 Nov 2026 20:00:00 GMT"
    #expect(strong.mismatch(with: seen) == nil)
  }

  @Test("a difference in any validator is another version")
  func everyValidatorCounts() {
    func mismatch(_ change: (inout SourceIdentity) -> Void) -> IdentityMismatch? {
      var seen = strong
      change(&seen)
      return strong.mismatch(with: seen)
    }
    #expect(mismatch { $0.size = 11 } == .size(recorded: 10, seen: 11))
    #expect(mismatch { $0.size = nil } == nil, "it is not told with every answer")
    #expect(mismatch { $0.etag = "\"y\"" } == .etag)
    #expect(mismatch { $0.etag = nil } == .etag)
    #expect(mismatch { $0.etagIsWeak = true } == .etag)
    #expect(mismatch { $0.lastModified = "Sat, 21 Nov 2026 14:17:27 GMT" } == .lastModified)
    #expect(mismatch { $0.versionID = "2" } == .versionID)
  }

  @Test("only a strong validator makes an identity strong")
  func onlyStrongValidatorsLetAnotherWorkerGoOn() {
    #expect(strong.isStrong)
    var identity = strong
    identity.etagIsWeak = true
    #expect(!identity.isStrong)
    identity.etag = nil
    #expect(!identity.isStrong, "a modification time alone, without knowing when")
    identity.date = "Sat, 21 Nov 2026 14:18:25 GMT"
    #expect(!identity.isStrong, "59 seconds later")
    identity.date = "Sat, 21 Nov 2026 14:18:26 GMT"
    #expect(identity.isStrong)
    identity.lastModified = nil
    #expect(!identity.isStrong)
    identity.versionID = "1"
    #expect(identity.isStrong)
  }

  @Test("HTTP dates are read in their standard form only")
  func readsDates() {
    #expect(HTTPDate.parse("Sat, 21 Nov 2026 14:17:26 GMT") == Timestamp("2026-11-21T14:17:26Z"))
    for text in [
      "", "Saturday, 21-Nov-26 14:17:26 GMT", "Sat, 31 Feb 2026 14:17:26 GMT", "Sat, 21 Nov 2026 14:17:26 CET",
    ] {
      #expect(HTTPDate.parse(text) == nil)
    }
  }
}
