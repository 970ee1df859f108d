import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing
import WorkerOptions

@testable import reelhaul

@Suite struct TaskArgumentsTests {
  private func spec(_ words: String...) throws -> TaskSpec { try spec(words) }

  private func spec(_ words: [String], of source: String = "https://a.example/x.mp4") throws -> TaskSpec {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["download", source] + words) else {
      throw UsageError("nothing to run")
    }
    return try TaskSpec(kind: .download, source: arguments.positionals[0], arguments).checked()
  }

  @Test("every flag of download is read")
  func readsEveryFlag() throws {
    let id = "01990000-0000-7000-8000-000000000001"
    let spec = try spec(
      "--to", "storage://films/a.mp4", "--id", id, "-p", "-7", "--queue", "slow", "--after",
      "01990000-0000-7000-8000-000000000002", "--not-before", "2030-01-01T00:00:00Z",
      "--sha256", String(repeating: "0F", count: 32), "--bytes", "1KiB", "--if-exists", "skip",
      "--header", "X-A:  b: c", "--max-attempts", "3", "--retry-after", "1,5", "--rate", "1MiB",
      "--credential", "cdn", "--label", "title=A=B", "--label", "k=", "--paused")
    #expect(spec.id == UniqueID(id))
    #expect(spec.destination == "storage://films/a.mp4")
    #expect(spec.priority == -7)
    #expect(spec.queue == "slow")
    #expect(spec.after == [UniqueID("01990000-0000-7000-8000-000000000002")])
    #expect(spec.notBefore == Timestamp("2030-01-01T00:00:00Z"))
    #expect(spec.expect == Expectation(sha256: Array(repeating: 15, count: 32), bytes: 1024))
    #expect(spec.ifExists == .skip)
    #expect(spec.headers == [HeaderField(name: "X-A", value: "b: c")])
    #expect(spec.retry == RetryPolicy(maxAttempts: 3, intervals: [1, 5]))
    #expect(spec.rate == 1 << 20)
    #expect(spec.credential == "cdn")
    #expect(spec.labels == ["title": "A=B", "k": ""])
    #expect(spec.paused)
  }

  @Test("a time after a plus is from now on") func aTimeFromNow() throws {
    let time = try #require(try spec("--not-before", "+2h").notBefore)
    #expect(abs(time.microseconds - Clocks.realtimeMicroseconds() - 7_200_000_000) < 60_000_000)
  }

  @Test("without flags the task has its defaults")
  func defaultsAreTheDefaultTask() throws {
    let spec = try spec()
    #expect(
      spec
        == TaskSpec(
          id: spec.id, kind: .download, source: "https://a.example/x.mp4", destination: "storage://default/x.mp4"))
  }

  /// Errors name the word that was typed, never the field of JSON that it becomes.
  @Test(
    "errors name the option, not the field",
    arguments: [
      (["--to", "/etc/passwd"], "--to: "), (["--header", "Cookie: a"], "--header: "),
      (["--queue", "a b"], "--queue: "),
      (["--rate", "0"], "--rate: "), (["--credential", "a b"], "--credential: "), (["--label", "a b=c"], "--label: "),
      (
        ["--id", "01990000-0000-7000-8000-000000000001", "--after", "01990000-0000-7000-8000-000000000001"], "--after: "
      ),
      (["--retry-after", "86401"], "--retry-after: "),
      (["--retry-after", "\(String(repeating: "1,", count: 100))1"], "--retry-after: must be at most 100 "),
      (["--not-before", "2026-01-15T12:00:60Z"], "--not-before: second 60"),
      (["--not-before", "+90"], "--not-before must be a time such as"),
    ])
  func errorsNameTheOption(_ words: [String], _ start: String) throws {
    let error = #expect(throws: UsageError.self) { try spec(words) }
    #expect(error?.message.hasPrefix(start) == true, "\(error?.message ?? "")")
    let source = #expect(throws: UsageError.self) { try spec([], of: "storage://default/a") }
    #expect(source?.message == "URL: a task of kind download needs an http://, https:// or s3://BUCKET/KEY URL here")
  }

  @Test("a value may begin with a mark that combines with what is before it") func combiningMarks() throws {
    let mark = "\u{301}x"
    #expect(try spec("--label=title=\(mark)").labels == ["title": mark])
    #expect(try spec("--label=\(mark)=a").labels == [mark: "a"])
    #expect(try KeyValueList.parse("a=\(mark),b=1", of: .labels) == ["a": mark, "b": "1"])
    #expect(try TaskFilter.labels(["a=\(mark)"]) == ["a": mark])
    setenv("REELHAUL_TEST_MARK", mark, 1)
    defer { unsetenv("REELHAUL_TEST_MARK") }
    #expect(ProcessEnvironment.all["REELHAUL_TEST_MARK"] == mark)
  }

  @Test("a label that is given twice is refused")
  func aLabelIsGivenOnce() {
    #expect(throws: UsageError("--label names a twice")) { try spec("--label", "a=1", "--label", "a=2") }
  }

  @Test("lists of pairs with slips are refused", arguments: ["a=1,,b=2", "a=1,", ",", "a", "=1", "a=1, b=2"])
  func listsOfPairsAreReadStrictly(_ text: String) {
    #expect(throws: UsageError("--labels (REELHAUL_LABELS) must be K=V,…, not \"\(text)\"")) {
      try KeyValueList.parse(text, of: .labels)
    }
  }

  @Test(
    "option values that no task can have are refused",
    arguments: [
      ["--id", "7"], ["--after", "x"], ["--not-before", "tomorrow"], ["--sha256", "00"], ["--md5", "xyz"],
      ["--header", "none"], ["--retry-after", "1,x"], ["--label", "x"], ["--to", "/etc/passwd"],
      ["--to", "storage://default/../x"], ["--header", "Cookie: a"], ["--queue", "a b"], ["--rate", "0"],
      ["--retry-after", "1,,2"], ["--retry-after", "1,"], ["--retry-after", ""], ["--retry-after", "+5"],
      ["--retry-after", "1, 2"], ["--bytes", "1.5"], ["--not-before", "+1h1h"],
    ])
  func refusesInvalidOptions(_ words: [String]) {
    #expect(throws: UsageError.self) { try spec(words[0], words[1]) }
  }

  @Test("every field of a task has an option, except the fields that are part of the command itself")
  func fieldsHaveOptions() {
    #expect(TaskField.all.filter { OptionSpec($0) == nil }.map(\.path) == ["kind", "source"])
    #expect(OptionSpec.submitting + [.parameters] == TaskField.all.compactMap(OptionSpec.init))
    #expect(TaskField.overview.contains("after, notBefore, expect {sha256, md5, bytes}, ifExists"))
  }

  private func parameters(_ text: String) throws -> String? {
    let command = CommandSpec(name: "hand-in", summary: "", options: OptionSpec.submitting + [.parameters])
    let program = CommandSpec(name: "p", summary: "", subcommands: [command])
    let parser = CommandParser(program, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["hand-in", "--parameters", text]) else { return nil }
    let spec = try TaskSpec(kind: TaskKind(rawValue: "transcode"), source: "", arguments).checked()
    return spec.parameters.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("parameters are JSON, given in words or in a file")
  func readsParameters() throws {
    #expect(try parameters(#"{"preset": "fast"}"#) == #"{"preset":"fast"}"#)
    let directory = try TemporaryDirectory(prefix: "reelhaul-test")
    let path = "\(directory.path)/parameters.json"
    try TextFile.write("{\n  \"a\": 1\n}\n", to: path)
    #expect(try parameters("@\(path)") == #"{"a":1}"#)
    try TextFile.write("{\n  \"a\": x\n}\n", to: path)
    #expect(throws: UsageError("--parameters \(path) must be JSON: expected a value of another kind (byte 9)")) {
      try parameters("@\(path)")
    }
  }

  @Test(
    "parameters that are not JSON are refused, with the byte and the reason",
    arguments: [
      ("{", "--parameters must be JSON: ends in the middle of a value (byte 1)"),
      ("", "--parameters must be JSON: there is nothing to read (byte 0)"),
      ("1 2", "--parameters must be JSON: something follows the value (byte 2)"),
      ("@/nowhere", "--parameters: open /nowhere: No such file or directory"),
      ("\"\(String(repeating: "x", count: 1 << 16))\"", "--parameters: must be a JSON value of at most 65536 bytes"),
    ])
  func refusesParameters(text: String, message: String) {
    let error = #expect(throws: UsageError.self) { try parameters(text) }
    #expect(error?.message == message)
  }
}
