/// Shell completions, derived from the commands' values.
package enum CompletionScript {
  package enum Shell: String, Sendable, CaseIterable {
    case bash, zsh, fish
  }

  /// A script for the shell to source.
  package static func make(for shell: Shell, _ program: CommandSpec) -> String {
    switch shell {
    case .bash: BashCompletion(program).render()
    case .zsh: ZshCompletion(program).render()
    case .fish: FishCompletion(program).render()
    }
  }

  /// The options of a command, including the program's.
  static func options(of command: CommandSpec, in program: CommandSpec) -> [OptionSpec] {
    command.options + program.options + [.help]
  }

  /// `text` in single quotes.
  static func quote(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
