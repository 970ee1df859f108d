import TaskCore
import Testing

struct ResourceURLTests {
  @Test func readsItsParts() throws {
    guard case .web(let url) = try ResourceURL("HTTPS://Video.Example:8443/a/b%20c.mp4?x=1&y#part") else {
      Issue.record("not a web URL")
      return
    }
    #expect(url.scheme == .https && url.host == "video.example" && url.port == 8443)
    #expect(url.path == "/a/b%20c.mp4" && url.query == "x=1&y")
    #expect(url.text == "https://video.example:8443/a/b%20c.mp4?x=1&y")
    #expect(url.description == "https://video.example:8443/a/b%20c.mp4?x=***&***")
  }

  @Test(arguments: [
    ("http://a", "http://a/"), ("http://[::1]:80/x", "http://[::1]:80/x"), ("http://127.0.0.1/?", "http://127.0.0.1/?"),
    ("http://a?q", "http://a/?q"), ("http://a/ü", "http://a/%C3%BC"), ("http://a./", "http://a./"),
    ("storage://default/a b%25.mp4", "storage://default/a b%25.mp4"),
  ])
  func hasOneSpelling(text: String, expected: String) throws {
    switch try ResourceURL(text) {
    case .web(let url): #expect(url.text == expected)
    case .storage(let url): #expect(url.description == expected)
    }
  }

  @Test(
    arguments: [
      ("", .empty), ("a.mp4", .noScheme), ("/etc/passwd", .noScheme), ("http:/a", .noScheme), ("://a", .noScheme),
      ("file:///etc/passwd", .unsupportedScheme("file")), ("ftp://a/b", .unsupportedScheme("ftp")),
      ("http://", .host), ("http:///a", .host), ("http://a b/", .character(offset: 8)),
      ("http://a/\n", .character(offset: 9)),
      ("http://a/b c", .character(offset: 10)), ("http://u:p@a/", .userinfo), ("http://a:0/", .port),
      ("http://a:65536/", .port),
      ("http://a:/", .port), ("http://a:8x/", .port), ("http://a:+8/", .port), ("http://ü/", .internationalHost),
      ("http://a..b/", .host), ("http://[::1/", .host), ("http://[x]/", .host), ("http://[::1]x/", .port),
      ("http://a/%2", .percentEncoding(offset: 9)), ("http://a/%zz", .percentEncoding(offset: 9)),
      ("http://a/%00", .encodedNUL(offset: 9)), ("http://a\\b/", .host),
      ("http://a/" + String(repeating: "x", count: 9000), .tooLong),
    ] as [(String, InvalidURL)])
  func refuses(text: String, expected: InvalidURL) {
    #expect(throws: expected) { try ResourceURL(text) }
  }

  @Test(arguments: ["storage://default/../x", "storage://default/a%00", "storage:///x", "storage://default/"])
  func refusesPathsThatLeaveTheStorage(text: String) {
    #expect(throws: InvalidURL.self) { try ResourceURL(text) }
  }
}
