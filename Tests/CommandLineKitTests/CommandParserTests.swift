import CommandLineKit
import ReelhaulCodec
import Testing

@Suite struct CommandParserTests {
  @Test(
    "a value is read in every spelling",
    arguments: [
      "get --count=3 u", "get --count 3 u", "get -n 3 u", "get -n3 u", "get -n=3 u", "get u -n 3", "get -fn3 u",
      "--verbose get u -n 3",
    ])
  func readsEverySpellingOfAValue(_ line: String) throws {
    let arguments = try Sample.arguments(line)
    #expect(arguments.path == ["get"])
    #expect(arguments.positionals == ["u"])
    #expect(arguments.integer(Sample.count) == 3)
  }

  @Test("short flags may be joined")
  func readsClustersOfFlags() throws {
    let arguments = try Sample.arguments("get -vf u")
    #expect(arguments[flag: Sample.verbose])
    #expect(arguments[flag: Sample.force])
    #expect(try !Sample.arguments("get u")[flag: Sample.force])
  }

  @Test("a negative number is a value, not an option")
  func negativeNumbersAreValues() throws {
    #expect(try Sample.arguments("get --count -5 u").integer(Sample.count) == -5)
  }

  @Test("the values of a repeatable option keep their order")
  func repeatableOptionsKeepTheirOrder() throws {
    #expect(try Sample.arguments("get --header a --header=b=c u").all(Sample.header) == ["a", "b=c"])
    #expect(try Sample.arguments("get u").all(Sample.header) == [])
  }

  @Test("the default applies if no value is given")
  func defaultsHoldWhereNothingIsGiven() throws {
    #expect(try Sample.arguments("get u").integer(Sample.count) == 1)
    #expect(try Sample.arguments("get u")[Sample.mode] == nil)
  }

  @Test("two dashes end the options, and a single dash is a word")
  func twoDashesEndTheOptionsAndOneIsAWord() throws {
    #expect(try Sample.arguments("get -- --count").positionals == ["--count"])
    #expect(try Sample.arguments("stop - a").positionals == ["-", "a"])
    #expect(try Sample.arguments("stop").positionals == [])
  }

  @Test("required positionals get their words before an optional one in the middle")
  func requiredPositionalsComeBeforeOptionalOnes() throws {
    #expect(try Sample.arguments("copy a b").positionals == ["a", "b"])
    #expect(try Sample.arguments("copy a 3 b").positionals == ["a", "3", "b"])
    #expect(throws: UsageError("N must be a whole number, not \"x\"")) { try Sample.parse("copy a x b") }
  }

  @Test("a flag overrides the environment, and the environment overrides the file")
  func flagsStandOverTheEnvironmentOverTheFile() throws {
    let environment = ["APP_SIZE": "2KiB", "APP_VERBOSE": "0"]
    let file = ["APP_SIZE": "3KiB", "APP_VERBOSE": "1"]
    #expect(try Sample.arguments("get u", file: file).bytes(Sample.size) == 3072)
    #expect(try Sample.arguments("get u", environment: environment, file: file).bytes(Sample.size) == 2048)
    #expect(try Sample.arguments("get u", environment: ["APP_SIZE": ""], file: file).bytes(Sample.size) == nil)
    #expect(try Sample.arguments("get u --size 1k", environment: environment, file: file).bytes(Sample.size) == 1000)
    #expect(try Sample.arguments("get u", file: file)[flag: Sample.verbose])
    #expect(try !Sample.arguments("get u", environment: environment, file: file)[flag: Sample.verbose])
    #expect(throws: UsageError("APP_VERBOSE must be true or false, not \"maybe\"")) {
      try Sample.arguments("get u", environment: ["APP_VERBOSE": "maybe"])
    }
  }

  @Test(
    "a wrong command line is refused with a reason and a hint",
    arguments: [
      ("get u --cuont 3", "app get has no option --cuont", "Did you mean --count?"),
      ("kill u", "there is no command \"kill\"", "Did you mean 'app stop'?"),
      ("gte u", "there is no command \"gte\"", "Did you mean 'app get'?"),
      ("frobnicate", "there is no command \"frobnicate\"", "See 'app --help'."),
      ("get -x u", "app get has no option -x", "See 'app get --help'."),
      ("get u --count", "--count needs a value (N)", "See 'app get --help'."),
      ("get u --count --force", "--count needs a value (N)", "See 'app get --help'."),
      ("get u --force=yes", "--force takes no value", "See 'app get --help'."),
      ("get u --count x", "--count must be a whole number, not \"x\"", nil),
      ("get u --count 11", "--count must be from -10 to 10, not 11", nil),
      ("get u --size big", "--size must be a number of bytes such as 500, 10MiB or 1.5GB, not \"big\"", nil),
      ("get u --mode fsat", "--mode must be fast or safe, not \"fsat\"; did you mean fast?", nil),
      ("get u --mode safe --mode safe", "--mode is given twice", nil),
      ("get", "app get needs URL: what to get", "See 'app get --help'."),
      ("get u f extra", "app get does not know what to do with \"extra\"", "See 'app get --help'."),
      ("help get x", "app help does not know what to do with \"x\"", "See 'app get --help'."),
      ("shell bahs", "SHELL must be bash or zsh, not \"bahs\"; did you mean bash?", nil),
      ("", "app needs a command", "See 'app --help'."),
      // Too short for two edits to be a mistake.
      ("shell tcsh", "SHELL must be bash or zsh, not \"tcsh\"", nil),
      ("shell -1", "SHELL must be bash or zsh, not \"-1\"", nil),
      ("copy a", "app copy needs TARGET: where to", "See 'app copy --help'."),
      ("copy a 3 c d", "app copy does not know what to do with \"d\"", "See 'app copy --help'."),
    ])
  func refusesWithAReason(_ line: String, _ message: String, _ hint: String?) {
    #expect(throws: UsageError(message, hint: hint)) { try Sample.parse(line) }
  }

  @Test("an invalid setting is named by its key")
  func namesTheKeyOfABadSetting() {
    #expect(throws: UsageError("APP_SIZE must be a number of bytes such as 500, 10MiB or 1.5GB, not \"big\"")) {
      try Sample.parse("get u", environment: ["APP_SIZE": "big"])
    }
  }

  @Test(
    "every way to ask for help finds the help of its command",
    arguments: [
      ("--help", ["app"]), ("help", ["app"]), ("get --help", ["app", "get"]), ("get -h u", ["app", "get"]),
      ("help get", ["app", "get"]),
    ])
  func findsTheHelpThatIsAskedFor(_ line: String, _ expected: [String]) throws {
    guard case .help(_, let path) = try Sample.parse(line) else {
      Issue.record("\(line) asks for help")
      return
    }
    #expect(path == expected)
  }

  @Test("--version asks for the version")
  func knowsVersion() throws {
    guard case .version = try Sample.parse("--version") else {
      Issue.record("--version asks for the version")
      return
    }
  }

  @Test(
    "the edit distance counts insertions, deletions, replacements and swaps",
    arguments: [
      ("list", "lsit", 1), ("list", "lst", 1), ("list", "list", 0), ("resume", "pause", 4), ("cancel", "cancle", 1),
    ])
  func countsEdits(_ a: String, _ b: String, _ distance: Int) {
    #expect(Suggestion.distance(a, b) == distance)
    #expect(Suggestion.distance(b, a) == distance)
  }
}
