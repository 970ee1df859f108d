import ReelhaulCurl
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct ResponseGateTests {
  static let url = "http://a/film.mp4"
  static let known = SourceIdentity(finalURL: url, size: 1000, etag: "\"1\"", lastModified: "L")

  private func judge(
    _ asked: ResponseGate.Asked, _ status: Int, _ fields: [String: String]
  ) -> ResponseGate.Verdict {
    let head = CurlHead(status: status, fields: fields.map { CurlHead.Field(name: $0.key, value: $0.value) })
    return ResponseGate(asked: asked, url: Self.url).judge(head)
  }

  private var part: ResponseGate.Asked { .part(100..<200, of: Self.known) }
  private let good = [
    "content-range": "bytes 100-199/1000", "content-length": "100", "etag": "\"1\"", "last-modified": "L",
  ]

  @Test("the requested range is accepted")
  func theRangeAskedForIsTaken() {
    #expect(judge(part, 206, good) == .part(100..<200, of: Self.known))
    let start = ["content-range": "bytes 0-299/1000", "content-length": "300"]
    let first = judge(.first(count: 300), 206, good.merging(start) { $1 })
    #expect(first == .part(0..<300, of: Self.known))
  }

  @Test(
    "any other range is refused",
    arguments: [
      "bytes 101-199/1000", "bytes 100-198/1000", "bytes 100-200/1000", "bytes */1000", "bytes */*", "bytes 100-199",
      "100-199/1000", "bytes 199-100/1000", "bytes -100-199/1000", "bytes 100-199/ 1000", "bytes +100-199/1000",
      "bytes 100-99999999999999999999/1000", "items 100-199/1000", "",
    ])
  func anyOtherRangeIsRefused(value: String) {
    guard case .refused = judge(part, 206, good.merging(["content-range": value]) { $1 }) else {
      Issue.record("\(value) passed")
      return
    }
  }

  /// Its head agrees with itself: only what was asked for tells that it is not that.
  @Test(
    "a whole and honest answer with another range is refused",
    arguments: [0..<100, 99..<199, 101..<201, 100..<199, 100..<201, 0..<1000, 900..<1000] as [Range<Int64>])
  func anotherWholeRangeIsRefused(range: Range<Int64>) {
    let fields = [
      "content-range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/1000", "content-length": "\(range.count)",
    ]
    for asked in [part, .first(count: 300)] {
      guard case .refused = judge(asked, 206, good.merging(fields) { $1 }) else {
        Issue.record("\(range) passed for \(asked)")
        continue
      }
    }
  }

  @Test("the beginning of the requested range is accepted, unless it is tiny")
  func theBeginningIsTaken() {
    let known = SourceIdentity(finalURL: Self.url, size: 1 << 20, etag: "\"1\"", lastModified: "L")
    for asked in [.part(0..<200_000, of: known), .first(count: 200_000)] as [ResponseGate.Asked] {
      for count: Int64 in [1, 65_535, 65_536, 199_999, 200_001] {
        let fields = ["content-range": "bytes 0-\(count - 1)/\(1 << 20)", "content-length": "\(count)"]
        let verdict = judge(asked, 206, good.merging(fields) { $1 })
        let isTaken = 65_536...200_000 ~= count
        #expect((verdict == .part(0..<count, of: known)) == isTaken, "\(count) of \(asked)")
      }
    }
  }

  @Test(
    "coded, multipart or wrongly long answers are refused",
    arguments: [
      ["content-encoding": "gzip"], ["content-type": "multipart/byteranges; boundary=x"], ["content-length": "99"],
      ["content-length": "101"], ["content-length": "abc"], ["content-length": "-1"],
      ["transfer-encoding": "identity"], ["transfer-encoding": "gzip"],
    ])
  func ambiguousBodiesAreRefused(fields: [String: String]) {
    guard case .refused = judge(part, 206, good.merging(fields) { $1 }) else {
      Issue.record("\(fields) passed")
      return
    }
  }

  @Test("a length may be repeated, and not contradicted")
  func aLengthMayBeAList() {
    #expect(
      judge(part, 206, good.merging(["content-length": "100, 100,\t100"]) { $1 }) == .part(100..<200, of: Self.known))
    #expect(
      judge(.whole, 200, ["content-length": "7,7"]) == .whole(SourceIdentity(finalURL: Self.url, size: 7)))
    for value in ["100, 101", "100,", ",100", "100 100", ", "] {
      #expect(
        judge(part, 206, good.merging(["content-length": value]) { $1 }) == .refused("Content-Length is not one number")
      )
    }
  }

  @Test("an object of S3 that was stored with a coding is its stored bytes") func aCodedObject() {
    for value in ["gzip", "aws-chunked"] {
      let head = CurlHead(
        status: 206,
        fields: good.merging(["content-encoding": value]) { $1 }.map { CurlHead.Field(name: $0.key, value: $0.value) })
      #expect(
        ResponseGate(asked: part, url: Self.url, isObject: true).judge(head) == .part(100..<200, of: Self.known))
    }
  }

  @Test(
    "a different validator is another version",
    arguments: [
      (["etag": "\"2\""], IdentityMismatch.etag), (["etag": "W/\"1\""], .etag), (["last-modified": "M"], .lastModified),
      (["content-range": "bytes 100-199/1001"], .size(recorded: 1000, seen: 1001)),
      (["content-range": "bytes 100-149/150", "content-length": "50"], .size(recorded: 1000, seen: 150)),
    ])
  func anotherVersionIsSeen(fields: [String: String], mismatch: IdentityMismatch) {
    #expect(judge(part, 206, good.merging(fields) { $1 }) == .changed(mismatch))
  }

  @Test("a whole file instead of a range is accepted only on purpose")
  func theWholeForAPartIsTakenOnPurposeOnly() {
    let same = ["content-length": "1000", "etag": "\"1\"", "last-modified": "L"]
    #expect(judge(part, 200, same) == .unranged)
    #expect(judge(part, 200, same.merging(["etag": "\"2\""]) { $1 }) == .changed(.etag))
    #expect(judge(.whole, 200, same) == .whole(Self.known))
    #expect(judge(.first(count: 10), 200, same) == .whole(Self.known))
    guard case .refused = judge(.whole, 206, good) else {
      Issue.record("a part was accepted as the whole")
      return
    }
  }

  @Test("a part that comes with status 200 is a part, and never the whole")
  func aPartWithStatus200() {
    let fields = ["content-range": "bytes 0-99/1000", "content-length": "100", "etag": "\"1\"", "last-modified": "L"]
    guard case .part(0..<100, let identity) = judge(.first(count: 100), 200, fields), identity.size == 1000 else {
      Issue.record("it was taken for something else")
      return
    }
    #expect(judge(part, 200, good) == judge(part, 206, good))
    guard case .refused = judge(.whole, 200, fields) else {
      Issue.record("a part was accepted as the whole")
      return
    }
    // The whole, whatever else is said of it.
    let all = ["content-range": "bytes 0-99/100", "content-length": "100"]
    let odd = ["content-range": "bytes 0-99/1000", "content-length": "1000"]
    guard case .whole = judge(.first(count: 100), 200, all), case .whole = judge(.whole, 200, odd) else {
      Issue.record("the whole was not accepted")
      return
    }
  }

  @Test("a whole that is just as long as the first range may be a part")
  func aWholeAsLongAsTheRange() {
    let fields = ["content-length": "300", "etag": "\"1\""]
    #expect(judge(.first(count: 300), 200, fields) == .unranged)
    for count: Int64 in [299, 301] {
      guard case .whole = judge(.first(count: count), 200, fields) else {
        Issue.record("it is the whole")
        continue
      }
    }
  }

  @Test("a range of all bytes may come as the whole, with and without Content-Range")
  func aPartOfAllBytesWithStatus200() {
    let all = ResponseGate.Asked.part(0..<1000, of: Self.known)
    let same = ["content-length": "1000", "etag": "\"1\"", "last-modified": "L"]
    #expect(judge(all, 200, same) == .part(0..<1000, of: Self.known))
    #expect(judge(all, 200, same.merging(["content-range": "bytes 0-999/1000"]) { $1 }) == judge(all, 200, same))
    #expect(judge(all, 200, same.merging(["etag": "\"2\""]) { $1 }) == .changed(.etag))
    let unframed = ["transfer-encoding": "chunked", "etag": "\"1\"", "last-modified": "L"]
    #expect(judge(all, 200, unframed) == .unranged)
  }

  @Test("ranges need a total and a length")
  func aTotalAndALengthAreNeededToPlanRanges() {
    let fields = ["content-range": "bytes 0-99/*", "content-length": "100"]
    #expect(judge(.first(count: 100), 206, fields) == .unranged)
    let chunked = ["content-range": "bytes 0-99/1000", "transfer-encoding": "chunked"]
    #expect(judge(.first(count: 100), 206, chunked) == .unranged)
    #expect(judge(part, 206, good.merging(["transfer-encoding": "chunked"]) { $1 }) == .unranged)
    let other = ["transfer-encoding": "chunked", "etag": "other"]
    #expect(judge(part, 206, good.merging(other) { $1 }) == .changed(.etag))
  }

  @Test("a transfer coding other than chunked is refused", arguments: ["identity", "gzip", "gzip, chunked"])
  func aWholeInAnotherCodingThanChunksIsRefused(coding: String) {
    guard case .refused = judge(.whole, 200, ["transfer-encoding": coding, "content-length": "1000"]) else {
      Issue.record("\(coding) passed")
      return
    }
  }

  /// After decoding, the different values would look equal.
  @Test("an entity tag that is not ASCII is ignored")
  func aTagThatIsNotASCIIIsIgnored() {
    let head = CurlHead(status: 200, fields: [.init(name: "etag", value: "\"\u{FFFD}\"")])
    #expect(SourceIdentity(head: head, url: Self.url, size: 1).etag == nil)
  }

  /// An identity that several versions can share does not prove that two ranges belong to one file.
  @Test(
    "only a well-formed strong entity tag is strong",
    arguments: [
      ("null", true), ("", nil), ("\"\"", nil), ("W/\"\"", nil), ("w/\"1\"", true), ("W/\"1\"", true), ("abc", true),
      ("\"a b\"", true), ("\"a\"b\"", true), ("\"", true), ("\"a\rb\"", nil), ("\"1\"", false),
    ] as [(String, Bool?)])
  func onlyATagIsStrong(tag: String, isWeak: Bool?) {
    let head = CurlHead(status: 200, fields: [.init(name: "etag", value: tag)])
    let identity = SourceIdentity(head: head, url: Self.url, size: 1)
    #expect(identity.etag == nil ? isWeak == nil : identity.etagIsWeak == isWeak, "\(identity)")
    #expect(identity.isStrong == (isWeak == false))
    #expect((identity.ifRange != nil) == (isWeak == false))
  }

  @Test("the version id null is ignored", arguments: ["null", ""]) func anObjectWithoutVersionsHasNone(value: String) {
    let head = CurlHead(status: 200, fields: [.init(name: "x-amz-version-id", value: value)])
    let identity = SourceIdentity(head: head, url: Self.url, size: 1)
    #expect(identity.versionID == nil && !identity.isStrong)
  }

  /// Only the position of the range matters; the size need not be announced again.
  @Test("later answers need not tell the size")
  func aSizeIsToldWithTheFirstAnswer() {
    var seen = Self.known
    seen.size = nil
    #expect(judge(part, 206, good.merging(["content-range": "bytes 100-199/*"]) { $1 }) == .part(100..<200, of: seen))
    let chunked = ["transfer-encoding": "chunked", "etag": "\"1\"", "last-modified": "L"]
    #expect(judge(part, 200, chunked) == .unranged)
  }

  /// A login page or an outage, whatever its source and its ranges are.
  @Test("a web page is not accepted as a new version")
  func aPageIsNoNewVersion() {
    let html = ["content-type": "text/html", "content-length": "33"]
    let whole = CurlHead(status: 200, fields: html.map { CurlHead.Field(name: $0.key, value: $0.value) })
    let known = SourceIdentity(finalURL: "http://a/v1", size: 1000, etag: "\"1\"")
    for gate in [
      ResponseGate(asked: part, url: Self.url), ResponseGate(asked: .whole, url: "http://a/login", isMedia: true),
      ResponseGate(asked: .first(count: 100), url: "http://a/login", isMedia: true),
      ResponseGate(asked: .part(0..<100, of: known), url: "http://a/v1"),
    ] {
      guard case .refused = gate.judge(whole) else {
        Issue.record("\(gate) passed")
        continue
      }
    }
    let ranged = html.merging(["content-range": "bytes 0-32/33"]) { $1 }
    guard case .refused = judge(.first(count: 100), 206, ranged) else {
      Issue.record("a page's range passed")
      return
    }
    // A web page that is itself the source, and that has changed.
    var tagged = whole
    tagged.fields.append(.init(name: "etag", value: "\"2\""))
    #expect(
      ResponseGate(asked: .part(0..<100, of: known), url: "http://a/v1").judge(tagged)
        == .changed(.size(recorded: 1000, seen: 33)))
  }

  @Test("a web page is refused for a source that names a video")
  func aWebPageIsNoFilm() {
    guard case .refused = judge(.whole, 200, ["content-type": "text/html; charset=utf-8"]) else {
      Issue.record("a web page passed")
      return
    }
    let page = ResponseGate(asked: .whole, url: "http://a/page")
    let head = CurlHead(status: 200, fields: [.init(name: "content-type", value: "text/html")])
    #expect(page.judge(head) == .whole(SourceIdentity(finalURL: "http://a/page", size: nil)))
  }

  @Test("the size in a 416 shows whether the source has changed")
  func beyondTheEndTheSizeTells() {
    #expect(judge(part, 416, ["content-range": "bytes */150"]) == .changed(.size(recorded: 1000, seen: 150)))
    #expect(judge(part, 416, ["content-range": "bytes */1000"]) == .unranged)
    #expect(judge(.first(count: 1), 416, ["content-range": "bytes */0"]) == .unranged)
    #expect(judge(.whole, 416, [:]) == .status(416))
    #expect(judge(.whole, 412, [:]) == .status(412))
  }

  @Test("a redirect needs a target", arguments: [301, 302, 303, 307, 308])
  func redirectsNeedATarget(status: Int) {
    #expect(judge(part, status, ["location": "/x"]) == .redirect(to: "/x"))
    guard case .refused = judge(part, status, [:]) else {
      Issue.record("a redirect to nowhere passed")
      return
    }
  }

  @Test("other statuses are refused without proving anything", arguments: [201, 204, 205, 300, 304])
  func otherAnswersProveNothing(status: Int) {
    guard case .refused = judge(part, status, [:]) else {
      Issue.record("\(status) passed")
      return
    }
  }

  @Test("a failure keeps its status", arguments: [400, 401, 403, 404, 410, 429, 500, 503])
  func failuresKeepTheirStatus(status: Int) {
    #expect(judge(part, status, [:]) == .status(status))
  }
}
