import Testing

@testable import ReelhaulCurl

@Suite struct HeadCollectorTests {
  private func collect(_ lines: [String]) -> HeadCollector.Progress {
    var collector = HeadCollector()
    var last = HeadCollector.Progress.more
    for line in lines {
      last = Array("\(line)\r\n".utf8).withUnsafeBytes { collector.add(line: $0) }
      if last != .more { break }
    }
    return last
  }

  @Test("field names are in lower case and values are trimmed")
  func namesAreLowerCaseAndValuesTrimmed() {
    let head = CurlHead(status: 206, fields: [.init(name: "content-range", value: "bytes 0-1/2")])
    #expect(collect(["HTTP/1.1 206 Partial Content", "Content-Range: \t bytes 0-1/2  ", ""]) == .complete(head))
  }

  @Test("an informational head is left out")
  func anInformationalHeadIsLeftOut() {
    let head = CurlHead(status: 200, fields: [.init(name: "b", value: "2")])
    let lines = ["HTTP/1.1 103 Early Hints", "a: 1", "", "HTTP/1.1 200 OK", "b: 2", ""]
    #expect(collect(lines) == .complete(head))
  }

  @Test("the head of a 101 is final")
  func nothingFollowsASwitchOfProtocols() {
    let head = CurlHead(status: 101, fields: [.init(name: "upgrade", value: "websocket")])
    #expect(collect(["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", ""]) == .complete(head))
  }

  @Test("a status line of HTTP/2 without a reason is read")
  func http2HasNoReason() {
    #expect(collect(["HTTP/2 204", ""]) == .complete(CurlHead(status: 204)))
  }

  @Test("only a length or chunks tell where a body ends")
  func bodiesEndWithALengthOrChunks() {
    func head(_ field: String) -> CurlHead {
      CurlHead(status: 200, fields: [.init(name: field, value: "chunked")])
    }
    #expect(head("content-length").isDelimited && head("transfer-encoding").isDelimited)
    #expect(!head("etag").isDelimited)
  }

  @Test("a redirect target that is not UTF-8 keeps its bytes")
  func aTargetKeepsItsBytes() {
    var collector = HeadCollector()
    var last = HeadCollector.Progress.more
    let target: [UInt8] = Array("/vid".utf8) + [0xE9] + Array("o.mp4".utf8)
    for line in [Array("HTTP/1.1 302 Found".utf8), Array("Location: ".utf8) + target, []] {
      last = (line + [13, 10]).withUnsafeBytes { collector.add(line: $0) }
    }
    #expect(last == .complete(CurlHead(status: 302, fields: [.init(name: "location", value: "/vid%e9o.mp4")])))
    let head = CurlHead(status: 302, fields: [.init(name: "location", value: "/vidéo.mp4")])
    #expect(collect(["HTTP/1.1 302 Found", "Location: /vidéo.mp4", ""]) == .complete(head))
  }

  @Test("trailers are ignored, and limited like the head")
  func trailersAreIgnoredAndBounded() {
    var collector = HeadCollector()
    func add(_ line: String) -> HeadCollector.Progress {
      Array("\(line)\r\n".utf8).withUnsafeBytes { collector.add(line: $0) }
    }
    for line in ["HTTP/1.1 200 OK", ""] { _ = add(line) }
    #expect(add("HTTP/1.1 500 No") == .more)
    #expect((1..<HeadCollector.maximumFields).allSatisfy { add("x-\($0): y") == .more })
    #expect(add("x: y") == .tooLarge)
  }

  @Test("a head that libcurl might read differently is refused")
  func ambiguousHeadsAreRefused() {
    #expect(collect(["HTTP/1.1 200 OK", " folded: x"]) == .malformed)
    #expect(collect(["HTTP/1.1 200 OK", "x: y", "\tTransfer-Encoding: chunked"]) == .malformed)
    #expect(collect(["HTTP/1.1 200 OK", " "]) == .malformed)
    #expect(collect(["HTTP/2 200", "Transfer-Encoding: chunked"]) == .malformed)
    #expect(collect(["HTTP/1.1 304 NM", "HTTP/1.1 200 x:y"]) == .malformed)
  }

  @Test("too many or too long header fields are refused")
  func floodsAreRefused() {
    let many = (0...HeadCollector.maximumFields).map { "x-\($0): y" }
    #expect(collect(["HTTP/1.1 200 OK"] + many) == .tooLarge)
    let long = String(repeating: "x", count: HeadCollector.maximumBytes)
    #expect(collect(["HTTP/1.1 200 OK", "x: \(long)"]) == .tooLarge)
  }

  @Test(
    "a wrong status line is refused",
    arguments: ["HTTP/1.1", "HTTP/1.1 20 OK", "HTTP/1.1 abc", "HTTP/1.1 099 Low", "ICY 200 OK", ""])
  func aWrongStatusLineIsRefused(line: String) {
    #expect(collect([line]) == .malformed)
  }
}
