import CommandLineKit
import Glibc
import ReelhaulSystem
import Testing

@Suite struct CompletionScriptTests {
  @Test("a completion script offers commands, options and choices", arguments: CompletionScript.Shell.allCases)
  func namesCommandsOptionsAndChoices(_ shell: CompletionScript.Shell) {
    let script = CompletionScript.make(for: shell, Sample.program)
    // In fish every value has an empty description, because fish would show the option's description for each.
    let values = shell == .fish ? [#"fast\t safe\t"#, #"here\t there\t"#] : ["fast safe", "here there"]
    for word in ["get", "stop", "shell", "count", "mode", "verbose", "bash zsh"] + values {
      #expect(script.contains(word), "\(shell) offers \(word)")
    }
  }

  @Test("bash completes commands, options and values")
  func bashCompletes() throws {
    let script = CompletionScript.make(for: .bash, Sample.program)
    #expect(try complete(script, ["app", "s"]) == ["stop", "shell"])
    #expect(try complete(script, ["app", "h"]) == ["help"])
    #expect(try complete(script, ["app", "--v"]) == ["--verbose", "--version"])
    #expect(try complete(script, ["app", "help", "s"]) == ["stop", "shell"])
    #expect(try complete(script, ["app", "get", "--mo"]) == ["--mode"])
    #expect(try complete(script, ["app", "get", "--mode", "f"]) == ["fast"])
    #expect(try complete(script, ["app", "get", "--mode", "=", "s"]) == ["safe"])
    #expect(try complete(script, ["app", "stop", "--place", "t"]) == ["there"])
    #expect(try Sample.arguments("stop u --place elsewhere")[Sample.place] == "elsewhere")
    #expect(try complete(script, ["app", "--verbose", "shell", ""]) == ["bash", "zsh"])
  }

  @Test("names of files are offered whole, whatever they contain") func bashCompletesFiles() throws {
    let program = CommandSpec(
      name: "app", summary: "An application",
      subcommands: [
        CommandSpec(name: "send", summary: "Send it", positionals: [PositionalSpec("FILE", kind: .file, help: "what")])
      ])
    let directory = try TemporaryDirectory()
    let names = ["a film.mp4", "a*", "ab"].map { "\(directory.path)/\($0)" }
    for name in names { try TextFile.write("", to: name) }
    let script = CompletionScript.make(for: .bash, program)
    #expect(Set(try complete(script, ["app", "send", "\(directory.path)/a"])) == Set(names))
    #expect(try complete(script, ["app", "send", "\(directory.path)/b"]) == [])
  }

  /// The completions that bash offers for the last of `words`.
  private func complete(_ script: String, _ words: [String]) throws -> [String] {
    let line = words.map { "'\($0)'" }.joined(separator: " ")
    let test =
      script + "\nCOMP_WORDS=(\(line)); COMP_CWORD=\(words.count - 1); _app; printf '%s\\n' \"${COMPREPLY[@]}\""
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.stdout = directory.path + "/offers"
    try #require(ChildProcess("bash", ["-c", test], options).waitBlocking() == .exited(0))
    let file = try FileDescriptor.open(directory.path + "/offers", O_RDONLY)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    return String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }
}
