import ReelhaulCurl
import Testing

@Suite struct CurlURLTests {
  @Test("the parts of a URL are normalised")
  func partsAreNormalised() throws {
    let url = try #require(CurlURL("HTTPS://Example.COM/a%20b?token=1"))
    #expect(url.scheme == "https")
    #expect(url.host == "example.com")
    #expect(url.port == 443)
    #expect(url.path == "/a%20b")
    #expect(url.server == "example.com:443")
  }

  @Test(
    "references are resolved against their base",
    arguments: [
      ("http://a/b/c?d", "e", "http://a/b/e"),
      ("http://a/b/c", "/e", "http://a/e"),
      ("http://a/b", "//c:81/d", "http://c:81/d"),
      ("https://a/b", "http://c/d?e", "http://c/d?e"),
      ("http://a/b", "file:///etc/passwd", "file:///etc/passwd"),
    ])
  func referencesResolve(base: String, reference: String, result: String) throws {
    #expect(try #require(CurlURL(base)).resolving(reference)?.text == result)
  }

  @Test(
    "text that is not an absolute URL is refused",
    arguments: ["", "no url at all:", "http://", "gopher2://a/", "http://a/\n", "http://a:99999/"])
  func invalidURLsAreRefused(text: String) {
    #expect(CurlURL(text) == nil)
  }

  @Test("a URL tells whether it contains a user name or a password")
  func credentialsAreSeen() throws {
    #expect(try #require(CurlURL("http://user:secret@host:8080/p")).hasCredentials)
    #expect(try !#require(CurlURL("http://host:8080/user:secret@p")).hasCredentials)
  }

  @Test("two URLs have the same origin if scheme, host and port are equal")
  func originIsSchemeHostAndPort() throws {
    let url = try #require(CurlURL("http://a/x"))
    #expect(url.isSameOrigin(as: try #require(CurlURL("http://A:80/y"))))
    #expect(!url.isSameOrigin(as: try #require(CurlURL("https://a/x"))))
    #expect(!url.isSameOrigin(as: try #require(CurlURL("http://a:81/x"))))
  }
}
