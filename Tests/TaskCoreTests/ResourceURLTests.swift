import TaskCore
import Testing

struct ResourceURLTests {
  @Test("a URL is split into its parts, and its description hides the query")
  func readsItsParts() throws {
    guard case .web(let url) = try ResourceURL("HTTPS://Video.Example:8443/a/b%20c.mp4?x=1&y#part") else {
      Issue.record("not a web URL")
      return
    }
    #expect(url.scheme == .https && url.host == "video.example" && url.port == 8443)
    #expect(url.path == "/a/b%20c.mp4" && url.query == "x=1&y")
    #expect(url.text == "https://video.example:8443/a/b%20c.mp4?x=1&y")
    #expect(url.description == "https://video.example:8443/a/b%20c.mp4?x=***&***")
  }

  @Test(
    "every spelling of a URL is normalised to one",
    arguments: [
      ("http://a", "http://a/"), ("http://[::1]:80/x", "http://[::1]:80/x"),
      ("http://127.0.0.1/?", "http://127.0.0.1/?"),
      ("http://[::1]:/x", "http://[::1]/x"), ("http://a:", "http://a/"), ("https://a:?q", "https://a/?q"),
      ("http://a?q", "http://a/?q"), ("http://a/ü", "http://a/%C3%BC"), ("http://a./", "http://a./"),
      ("storage://default/a b%25.mp4", "storage://default/a b%25.mp4"),
    ])
  func hasOneSpelling(text: String, expected: String) throws {
    switch try ResourceURL(text) {
    case .web(let url): #expect(url.text == expected)
    case .storage(let url): #expect(url.description == expected)
    case .s3, .tus: Issue.record("another sort of URL")
    }
  }

  @Test(
    "an invalid URL is refused with its reason",
    arguments: [
      ("", .empty), ("a.mp4", .noScheme), ("/etc/passwd", .noScheme), ("http:/a", .noScheme), ("://a", .noScheme),
      ("file:///etc/passwd", .unsupportedScheme("file")), ("ftp://a/b", .unsupportedScheme("ftp")),
      ("http://", .host), ("http:///a", .host), ("http://a b/", .character(offset: 8)),
      ("http://a/\n", .character(offset: 9)),
      ("http://a/b c", .character(offset: 10)), ("http://u:p@a/", .userinfo), ("http://a:0/", .port),
      ("http://a:65536/", .port),
      ("http://a::/", .port), ("http://:/", .host), ("http://a:8x/", .port), ("http://a:+8/", .port),
      ("http://ü/", .internationalHost),
      ("http://a..b/", .host), ("http://[::1/", .ipv6(.bracket)), ("http://[x]/", .ipv6(.group)),
      ("http://[::1]x/", .port),
      ("http://a/%2", .percentEncoding(offset: 9)), ("http://a/%zz", .percentEncoding(offset: 9)),
      ("http://a/%00", .encodedNUL(offset: 9)), ("http://a\\b/", .host),
      ("http://a/" + String(repeating: "x", count: 9000), .tooLong),
    ] as [(String, InvalidURL)])
  func refuses(text: String, expected: InvalidURL) {
    #expect(throws: expected) { try ResourceURL(text) }
  }

  @Test(
    "a host that libcurl could never connect to is refused",
    arguments: [
      ("[:::::]", .ipv6(.group)), ("[:::]", .ipv6(.group)), ("[]", .ipv6(.groups)), ("[:]", .ipv6(.group)),
      ("[1]", .ipv6(.groups)), ("[1:2:3:4:5:6:7]", .ipv6(.groups)), ("[1:2:3:4:5:6:7:8:9]", .ipv6(.groups)),
      ("[1:2:3:4:5:6:7:8::]", .ipv6(.groups)), ("[::1:2:3:4:5:6:7:8]", .ipv6(.groups)),
      ("[:1:2:3:4:5:6:7:8]", .ipv6(.group)), ("[1::2:]", .ipv6(.group)), ("[1::2::3]", .ipv6(.gaps)),
      ("[::2::3]", .ipv6(.gaps)), ("[::00001]", .ipv6(.group)), ("[::g]", .ipv6(.group)), ("[v1.a]", .ipv6(.ipv4Tail)),
      ("[fe80::1%25eth0]", .ipv6(.zone)), ("[fe80::1%eth0]", .ipv6(.zone)), ("[::ffff:127.0.0.256]", .ipv6(.ipv4Tail)),
      ("[::127.0.0.01]", .ipv6(.ipv4Tail)), ("[::127.0.1]", .ipv6(.ipv4Tail)), ("[::1.2.3.4:5]", .ipv6(.group)),
      ("[1:2:3:4:5:6:7:1.2.3.4]", .ipv6(.groups)),
      ("256.1.1.1", .ipv4), ("1.2.3.4.5", .ipv4), ("127.0.65536", .ipv4), ("4294967296", .ipv4), ("127.0.0.08", .ipv4),
      ("08.1.1.1", .ipv4), ("0x", .ipv4), ("1.2.3.0x", .ipv4), ("0x.1", .ipv4), ("film.1", .ipv4),
      ("127.0.0.1.", .ipv4),
      ("99999999999999999999", .ipv4), ("a.0x7f", .ipv4), ("1.2.3.", .ipv4),
    ] as [(String, InvalidURL)])
  func refusesImpossibleHosts(host: String, expected: InvalidURL) {
    #expect(throws: expected) { try ResourceURL("http://\(host)/a") }
    #expect(throws: expected) { try ResourceURL("http://\(host):8080/a") }
  }

  @Test(
    "a host that libcurl can resolve is accepted",
    arguments: [
      "[::]", "[::1]", "[1::]", "[1:2:3:4:5:6:7::]", "[::2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7:8]", "[2001:DB8::a:b]",
      "[0:0:0:0:0:0:0:0001]", "[::ffff:127.0.0.1]", "[1:2:3:4:5:6:127.0.0.255]", "127.0.0.1", "255.255.255.255",
      "127.1",
      "0x7f.1", "0X7F000001", "0177.0.0.1", "2130706433", "4294967295", "127.65536", "127.0.256", "0", "3com.example",
      "1.2.3.4.example", "0x7g", "a1", "x-1", "1-2.3a.",
    ])
  func acceptsHostsThatLibcurlCanResolve(host: String) throws {
    guard case .web(let url) = try ResourceURL("http://\(host):80/") else { return }
    #expect(url.origin == "http://\(host.lowercased()):80")
  }

  @Test(
    "a path that leaves its storage is refused",
    arguments: ["storage://default/../x", "storage://default/a%00", "storage:///x", "storage://default/"])
  func refusesPathsThatLeaveTheStorage(text: String) {
    #expect(throws: InvalidURL.self) { try ResourceURL(text) }
  }
}
