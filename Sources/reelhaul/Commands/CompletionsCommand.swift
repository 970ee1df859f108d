import CommandLineKit
import WorkerOptions

extension Subcommand {
  static let completions = Subcommand(
    CommandSpec(
      name: "completions", summary: "Print a shell's completions",
      positionals: [
        PositionalSpec(
          "SHELL", kind: .choice(CompletionScript.Shell.allCases.map(\.rawValue)), help: "bash, zsh or fish")
      ],
      examples: [
        Example("source <(reelhaul completions bash)", "In ~/.bashrc"),
        Example("source <(reelhaul completions zsh)", "In ~/.zshrc, after compinit"),
        Example("reelhaul completions fish | source", "In ~/.config/fish/config.fish"),
      ])
  ) { context in
    guard let shell = CompletionScript.Shell(rawValue: context.arguments.positionals[0]) else { return .usage }
    context.output.write(CompletionScript.make(for: shell, Program.spec))
    return .done
  }
}
