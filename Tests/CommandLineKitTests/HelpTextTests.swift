import CommandLineKit
import Testing

@Suite struct HelpTextTests {
  private let help = HelpText(Sample.get, path: ["app", "get"], inherited: Sample.program.options).render()

  @Test("the help of a command shows usage, options, defaults, variables, examples and exit codes")
  func showsEverythingOfACommand() {
    #expect(
      help == """
        Usage: app get URL [FILE] [OPTIONS]

        Get it.

        First paragraph.

        Second one.

        Arguments:
          URL   what to get
          FILE  where to

        Options:
          -f, --force          Do not ask
          -n, --count N        How many [default: 1]
              --size BYTES     How large [env: APP_SIZE]
              --header 'K: V'  A header [repeatable]
          -v, --verbose        Say more [env: APP_VERBOSE]

        Behaviour:
              --mode fast|safe  How

        General:
          -h, --help  Show this help

        Examples:
          # Get x
          app get https://a.example/x

        Exit codes:
          0  done

        """)
  }

  @Test("the help of a program lists its commands")
  func listsTheCommandsOfAProgram() {
    let help = HelpText(Sample.program, path: ["app"]).render()
    #expect(help.hasPrefix("Usage: app COMMAND [OPTIONS]\n\nAn application.\n\nCommands:\n  get    Get it\n"))
    #expect(help.contains("--version"))
  }

  @Test("no line of help is wider than the terminal", arguments: [40, 60, 100])
  func staysWithinTheTerminal(_ width: Int) {
    let long = CommandSpec(
      name: "x", summary: "Short", discussion: String(repeating: "many words ", count: 40),
      options: [OptionSpec("option", .text, help: String(repeating: "explained at length ", count: 10))])
    let lines = HelpText(long, path: ["app", "x"], width: width).render().split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= width })
  }
}
