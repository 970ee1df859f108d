import CommandLineKit
import ReelhaulMessages
import TaskCore
import Testing

@testable import reelhaul

@Suite struct UploadArgumentsTests {
  private func spec(_ words: [String]) throws -> TaskSpec {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(words) else { throw UsageError("nothing to run") }
    let kind = TaskKind(rawValue: arguments.path[0])
    return try TaskSpec(kind: kind, source: arguments.positionals[0], arguments).sent(by: arguments)
  }

  private func upload(_ words: String...) throws -> TaskSpec {
    try spec(["upload", "storage://default/a.mp4"] + words)
  }

  private func text(_ spec: TaskSpec) -> String? { spec.parameters.map { String(decoding: $0, as: UTF8.self) } }

  @Test("every flag of upload is read")
  func readsEveryFlag() throws {
    let spec = try upload(
      "--to", "s3://films/a.mp4", "--part-size", "64MiB", "--content-type", "video/mp4", "--metadata", "series=a=b",
      "--metadata", "Empty=", "--storage-class", "STANDARD_IA", "--checksum", "crc32c", "--queue", "slow", "-p", "3",
      "--if-exists", "skip", "--header", "Cache-Control: no-store", "--credential", "archive", "--connections", "4",
      "--rate", "1MiB", "--bytes", "9", "--sha256", String(repeating: "0F", count: 32), "--paused")
    #expect(spec.kind == .upload && spec.source == "storage://default/a.mp4" && spec.destination == "s3://films/a.mp4")
    #expect(
      text(spec) == """
        {"partSize":67108864,"contentType":"video/mp4","metadata":{"Empty":"","series":"a=b"},\
        "storageClass":"STANDARD_IA","checksum":"crc32c"}
        """)
    #expect(spec.queue == "slow" && spec.priority == 3 && spec.ifExists == .skip && spec.paused)
    #expect(spec.headers == [HeaderField(name: "Cache-Control", value: "no-store")])
    #expect(spec.credential == "archive" && spec.connections == 4 && spec.rate == 1 << 20)
    #expect(spec.expect == TaskCore.Expectation(sha256: Array(repeating: 15, count: 32), bytes: 9))
    #expect(try text(upload("--to", "https://a.example/b?sig=1", "--method", "POST")) == #"{"method":"POST"}"#)
    let whole = try upload("--to", "tus+https://a.example/files", "--creation-with-upload")
    #expect(text(whole) == #"{"creationWithUpload":true}"#)
  }

  @Test("without flags of its own an upload has no parameters")
  func hasNoParametersByDefault() throws {
    let spec = try upload("--to", "https://a.example/b")
    #expect(
      spec
        == TaskSpec(
          id: spec.id, kind: .upload, source: "storage://default/a.mp4", destination: "https://a.example/b"))
  }

  @Test("a copy has its destination as a word")
  func readsCopies() throws {
    let spec = try spec(["copy", "https://a.example/b", "s3://films/b", "--part-size", "5MiB", "--label", "title=B"])
    #expect(spec.kind == .copy && spec.source == "https://a.example/b" && spec.destination == "s3://films/b")
    #expect(text(spec) == #"{"partSize":5242880}"# && spec.labels == ["title": "B"])
  }

  @Test(
    "errors name the word that was typed",
    arguments: [
      ("upload storage://default/a", "--to: a task of kind upload needs an http://"),
      ("upload https://a/b --to s3://films/a", "SOURCE: a task of kind upload needs a storage://"),
      ("upload storage://default/a --to storage://default/b", "--to: a task of kind upload needs an http://"),
      ("upload storage://default/a --to s3://films/a --part-size 1MiB", "--part-size: must be from 5242880 to"),
      ("upload storage://default/a --to s3://films/a --part-size 6GiB", "--part-size: "),
      ("upload storage://default/a --to https://a/b --part-size 8MiB", "--part-size: only a destination s3://"),
      ("upload storage://default/a --to s3://films/a --method POST", "--method: only a destination http(s)://"),
      ("upload storage://default/a --to https://a/b --metadata a=b", "--metadata: only a destination s3://"),
      ("upload storage://default/a --to https://a/b --storage-class X", "--storage-class: only a destination s3://"),
      ("upload storage://default/a --to s3://films/a --metadata a", "--metadata must be KEY=VALUE"),
      ("upload storage://default/a --to s3://films/a --metadata a=1 --metadata a=2", "--metadata names a twice"),
      ("upload storage://default/a --to s3://films/a --content-type=", "--content-type: is empty"),
      (
        "upload storage://default/a --to s3://films/a --header Content-Type:x",
        "--header: Content-Type is the parameter"
      ),
      ("upload storage://default/a --to s3://films/a --allow-unframed", "reelhaul upload has no option"),
      ("copy s3://films/a s3://films/a", "DESTINATION: it is the source itself"),
      ("copy tus+https://a/b s3://films/a", "SOURCE: a task of kind copy needs an http://"),
      ("copy https://a/b storage://default/a --checksum none", "--checksum: only a destination http(s)://"),
      ("copy https://a/b s3://films/a --to s3://films/b", "reelhaul copy has no option --to"),
      ("copy s3://films/a storage://default/a --to-credential b", "--to-credential: only a destination http(s)://"),
      ("copy s3://films/a s3://films/b --to-credential a/b", "--to-credential: must be 1 to 100"),
      ("copy s3://films/a s3://films/a --credential a --to-credential a", "DESTINATION: it is the source itself"),
      ("copy s3://films/a s3://films/a --part-size 8MiB", "DESTINATION: it is the source itself"),
      ("upload storage://default/a --to s3://films/a --to-credential b", "reelhaul upload has no option --to-cred"),
    ])
  func errorsNameTheWord(line: String, start: String) {
    let error = #expect(throws: UsageError.self) { try spec(line.split(separator: " ").map(String.init)) }
    #expect(error?.message.hasPrefix(start) == true, "\(error?.message ?? "")")
  }

  @Test(
    "every example of an upload and a copy is a valid task", arguments: [Subcommand.upload.spec, Subcommand.copy.spec])
  func examplesAreTasks(_ command: CommandSpec) {
    for example in command.examples {
      #expect(throws: Never.self) { try spec(example.line.split(separator: " ").dropFirst().map(String.init)) }
    }
  }

  @Test("uploads and copies have the options of a download but for its own, and each parameter has one")
  func hasTheOptionsOfADownload() {
    let own = Set(OptionSpec.ofUpload.map(\.option.name))
    let download = Set(Subcommand.download.spec.options.map(\.name)).subtracting(["allow-unframed"])
    #expect(Set(Subcommand.upload.spec.options.map(\.name)) == download.union(own).subtracting(["to-credential"]))
    #expect(Set(Subcommand.copy.spec.options.map(\.name)) == download.union(own).subtracting(["to"]))
    #expect(OptionSpec.ofUpload.map(\.field) == UploadParameters.names)
  }
}
