import Testing

@testable import TaskCore

private let strong = SourceIdentity(
  finalURL: "https://a/b", size: 10, etag: "\"x\"", lastModified: "Sat, 21 Nov 2026 14:17:26 GMT")

struct SourceIdentityTests {
  @Test func aSignedOrSpreadURLIsTheSameSource() {
    var seen = strong
    seen.finalURL = "https://edge7/b?sig=2"
    seen.date = "Sat, 21 Nov 2026 20:00:00 GMT"
    #expect(strong.mismatch(with: seen) == nil)
  }

  @Test func everyValidatorCounts() {
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
}
