import Testing

@testable import ReelhaulSystem
@testable import TransferEngine

@Suite struct SecretRedactionTests {
  private func line(_ errors: String, environment: [String: String] = [:]) -> String {
    let output = ProgramOutput(output: [], errors: Array(errors.utf8), status: .exited(1))
    return SecretRedaction.line(of: output, words: ["/bin/keys"], environment: environment)
  }

  @Test(
    "what follows the name of a secret is hidden, in every spelling",
    arguments: [
      ("login failed: password: hunter2 is wrong", "login failed: password: […] is wrong"),
      ("token=abc", "token=[…]"), ("API_KEY: abc", "API_KEY: […]"), ("client-secret:abc,", "client-secret:[…]"),
      ("sent Authorization: Bearer abc def", "sent Authorization: Bearer […] def"), ("Basic dTpw", "Basic […]"),
      ("key 0123456789abcdef0123456789abcdef", "key […]"), ("key AKIAIOSFODNN7EXAMPLE.", "key […]."),
    ])
  func hides(_ text: String, _ shown: String) {
    #expect(line(text) == shown)
  }

  @Test(
    "of a URL, user, password, values and fragment are hidden, also where its word has other characters around it",
    arguments: [
      "https://u:CANARY@h/?x=CANARY5", "'https://CANARY@h/a'", "(https://h/a?CANARY)",
      "at=https://u:CAN@ARY@h/a#CANARY", "POST https://h/a?x=1&y=CANARY: refused",
    ]) func urls(_ text: String)
  {
    let shown = line("cannot read \(text)")
    #expect(shown.contains("//") && shown.contains("h/"))
    for secret in ["CANARY", "CAN", "ARY"] { #expect(!shown.contains(secret), "\(shown)") }
  }

  @Test("plain words stay, and variables with secrets do not")
  func keeps() {
    let text = "cannot open /srv/keys.json: Permission denied"
    #expect(line(text) == text)
    #expect(line("it is opensesame", environment: ["MY_TOKEN": "opensesame"]) == "it is […]")
    #expect(line("it is opensesame", environment: ["HOME": "opensesame"]) == "it is opensesame")
  }
}
