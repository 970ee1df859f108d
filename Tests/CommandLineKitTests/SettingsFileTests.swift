import CommandLineKit
import ReelhaulSystem
import Testing

@Suite struct SettingsFileTests {
  @Test("a settings file is read as a shell would source it")
  func readsWhatAShellCanSource() throws {
    let text = """
      # a comment

      A=1
      export B='two words # no comment'
        C="say \\"hi\\""
      D=
      E=it\\'s
      F='it'\\''s'
      G=a=b

      """
    #expect(
      try SettingsFile.parse(text) == [
        "A": "1", "B": "two words # no comment", "C": "say \"hi\"", "D": "", "E": "it's", "F": "it's", "G": "a=b",
      ])
  }

  @Test(
    "a value is what bash reads",
    arguments: [
      #""x\y.""#, #""a\$b\`c\"d\\e\'f""#, #"x\y\ z\#"#, "reelhaul. # mine", "a\t  # b", "a#b", #""a # b" # c"#,
      "'a # b'#c",
      " # nothing", "a\\ #b", "\u{301}a", "'\u{301}a'\u{301}", "\"\u{301}#\"",
    ])
  func readsWhatBashReads(_ value: String) async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/settings"
    var options = ChildProcess.Options()
    options.stdout = "\(directory.path)/value"
    try TextFile.write("KEY=\(value)\n", to: path)
    let shell = try ChildProcess("bash", ["-c", #". "$0" && printf %s "$KEY""#, path], options)
    #expect(await shell.wait() == .exited(0))
    let read = try #require(options.stdout.flatMap { try? TextFile.read($0) })
    #expect(try SettingsFile.parse("KEY=\(value)\n") == ["KEY": read])
  }

  @Test("a file of a Windows editor has the same settings", arguments: ["", "\u{FEFF}"])
  func lineBreaksOfWindowsEndALine(_ mark: String) throws {
    #expect(try SettingsFile.parse(mark + "A=1\r\n\r\n# a comment\r\nexport B='2' \r\n") == ["A": "1", "B": "2"])
    #expect(throws: UsageError("line 3 is not KEY=value")) { try SettingsFile.parse(mark + "A=1\r\n\r\nnonsense\r\n") }
    #expect(try SettingsFile.parse("A=1\u{2028}2") == ["A": "1\u{2028}2"], "a shell reads one line")
  }

  @Test(
    "a wrong line is named by its number",
    arguments: [
      ("A=1\nnonsense", "line 2 is not KEY=value"), ("1A=2", "line 1 is not KEY=value"),
      ("=2", "line 1 is not KEY=value"),
      ("\nA='x", "line 2 has an unfinished quotation"), ("A=x\\", "line 1 has an unfinished quotation"),
    ])
  func namesTheBadLine(_ text: String, _ message: String) {
    #expect(throws: UsageError(message)) { try SettingsFile.parse(text) }
  }

  @Test(
    "a line that is written is read back, whatever the value contains",
    arguments: ["plain", "with space", "it's", "", "a\"b\\c$d`e`", "name=/path,other=/p", "a'\u{301}b'\u{301}"])
  func readsBackWhatItWrites(_ value: String) throws {
    #expect(try SettingsFile.parse(SettingsFile.line("KEY", value)) == ["KEY": value])
  }

  @Test(
    "a word is in quotes where a shell would read it as something else",
    arguments: [
      ("/srv/reelhaul-data/reelhaul.env", "/srv/reelhaul-data/reelhaul.env"), ("", "''"), ("a b", "'a b'"),
      ("it's", "'it'\\''s'"), ("$HOME", "'$HOME'"), ("é", "'é'"),
    ])
  func quotesWords(_ text: String, _ word: String) {
    #expect(SettingsFile.word(text) == word)
  }

  @Test("settings are found by the prefix of their keys")
  func findsKeysByPrefix() {
    let settings = Settings(environment: ["P_A": "1", "P_": "x", "Q": "2"], file: ["P_A": "0", "P_B": "3"])
    #expect(settings.values(withPrefix: "P_") == ["A": "1", "B": "3"])
  }
}
