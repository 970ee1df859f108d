import Testing

@testable import TaskCore

@Suite struct SecretMaskTests {
  @Test(
    "what looks like a secret is hidden, and the words around it stay",
    arguments: [
      ("GET https://u:p@ss@h/a?x=1&y=2 failed", "GET https://•••@h/a?x=•••&y=••• failed"),
      ("postgres://u:p@ss@h/db", "postgres://•••@h/db"), ("MY_PASSWORD=x y", "MY_PASSWORD=••• y"),
      ("host=h password='my secret pw' user=x", "host=h password='•••' user=x"),
      (#"rejected: {"password" : "it's two words"}"#, #"rejected: {"password" : "•••"}"#),
      ("Authorization: Token abc was refused", "Authorization: Token ••• was refused"),
      ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer •••"), ("authorization=abc", "authorization=•••"),
      (#""Authorization": "Basic dXNlcjpwdw==""#, #""Authorization": "Basic •••""#),
      ("Set-Cookie: a=b; c=d\nSo", "Set-Cookie: •••\nSo"),
      ("Authorization: Negotiate abcdef==", "Authorization: Negotiate •••"),
      ("passphrase=x", "passphrase=•••"), ("access_key: x", "access_key: •••"), ("private-key=x", "private-key=•••"),
      ("signature=x", "signature=•••"), ("credential=x", "credential=•••"), ("ASIAIOSFODNN7EXAMPLE", "•••"),
      ("key AKIAIOSFODNN7EXAMPLE.", "key •••."), ("got eyJhbGciOiJIUzI1NiJ9.e30.abc", "got •••"),
      ("the token expired", "the token expired"), ("codec h264 of a-b-c is unknown", "codec h264 of a-b-c is unknown"),
    ]) func masks(text: String, shown: String)
  {
    #expect(SecretMask.masked(text, limit: 1000) == shown)
  }

  @Test("the text is cut to the limit") func limit() {
    #expect(SecretMask.masked("abcdef", limit: 5) == "abcd…")
    #expect(SecretMask.masked("abcde", limit: 5) == "abcde")
  }

  /// `a-` took minutes.
  @Test(
    "a long text that is almost a secret everywhere takes no time that grows with its square",
    .timeLimit(.minutes(1)),
    arguments: [
      "a-", "0", "eyJ-", "eyJ.", "password", "password ", "secret-", "token=", "?a", "&", "a:", "://", "://a:b",
      "bearer ", "AKIA", "key: '", "Authorization: ",
    ]) func longTexts(part: String)
  {
    #expect(SecretMask.masked(String(repeating: part, count: 16_000 / part.count), limit: 4000).count <= 4000)
  }
}
