import TaskCore
import Testing

struct URLRedactionTests {
  @Test(
    "a shown URL hides the values of its query",
    arguments: [
      ("https://a/b", "https://a/b"), ("https://a/b?x=1&sig=2", "https://a/b?x=***&sig=***"),
      ("https://a/b?token", "https://a/b?***"),
      ("https://u:p@a/b#f", "https://a/b"), ("https://a/b@c?d@e=1", "https://a/b@c?d@e=***"),
      ("nonsense?k=v", "nonsense?k=***"),
      ("https://u:p@q@a/b", "https://a/b"),
      ("https://a/b?U0VDUkVUVE9LRU4x==", "https://a/b?***"), ("https://a/b?U0VDUkVU=&x=1", "https://a/b?***&x=***"),
      ("https://a/b?SECRET;a=b", "https://a/b?***;a=***"),
      ("https://a/b?a=1;SECRET&b==2", "https://a/b?a=***;***&b=***"),
      ("https://a/b?=SECRET", "https://a/b?=***"), ("https://a/b?", "https://a/b?"),
      ("https://a/b?\u{301}sig=2", "https://a/b?\u{301}sig=***"), ("https://u:p@\u{301}a/b", "https://\u{301}a/b"),
      ("https://a/b#\u{301}f", "https://a/b"),
      ("https://a/b?&;", "https://a/b?&;"), ("tus+https://u:p@a/b?token=1", "tus+https://a/b?token=***"),
      ("s3://films/a@b?versionId=1", "s3://films/a@b?versionId=1"),
      ("s3://films/a?X-Amz-Signature=1", "s3://films/a?X-Amz-Signature=***"),
    ])
  func hidesSecrets(url: String, expected: String) {
    #expect(URLRedaction.redact(url) == expected)
  }
}
