import TaskCore
import Testing

struct URLRedactionTests {
  @Test(arguments: [
    ("https://a/b", "https://a/b"), ("https://a/b?x=1&sig=2", "https://a/b?x=***&sig=***"),
    ("https://a/b?token", "https://a/b?***"),
    ("https://u:p@a/b#f", "https://a/b"), ("https://a/b@c?d@e=1", "https://a/b@c?d@e=***"),
    ("nonsense?k=v", "nonsense?k=***"),
    ("https://u:p@q@a/b", "https://a/b"),
  ])
  func hidesSecrets(url: String, expected: String) {
    #expect(URLRedaction.redact(url) == expected)
  }
}
