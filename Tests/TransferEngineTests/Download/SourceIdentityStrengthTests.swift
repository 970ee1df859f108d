import ReelhaulCurl
import TaskCore
import Testing

@testable import TransferEngine

private let strong = SourceIdentity(
  finalURL: "https://a/b", size: 10, etag: "\"x\"", lastModified: "Sat, 21 Nov 2026 14:17:26 GMT")

@Suite struct SourceIdentityStrengthTests {
  @Test func onlyStrongValidatorsLetAnotherWorkerGoOn() {
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

  @Test("a field of an answer that is no text of ASCII is not kept, of any length")
  func hostileFields() {
    let hostile = String(repeating: "\u{1}", count: 60_000)
    let names = ["date", "last-modified", "x-amz-version-id"]
    let fields = names.map { CurlHead.Field(name: $0, value: hostile) } + [.init(name: "etag", value: "\"x\"")]
    let identity = SourceIdentity(head: CurlHead(status: 206, fields: fields), url: "https://a/b", size: 10)
    #expect(identity.etag == "\"x\"")
    #expect(identity.date == nil && identity.lastModified == nil && identity.versionID == nil)
  }

  @Test(
    "a modification time without a time of day is shared by all versions of the day",
    arguments: [
      "Sat, 21 Nov 2026", "Sat, 21 Nov 2026 GMT", "20261121", "Saturday, 21-Nov-26 00:00:00 GMT",
    ])
  func aDayIsNotEnough(_ modified: String) {
    var identity = strong
    identity.etag = nil
    identity.lastModified = modified
    identity.date = "Sun, 22 Nov 2026 14:18:26 GMT"
    #expect(!identity.isStrong)
  }
}
