import Glibc
import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Credentials that a program prints.
@Suite struct CredentialCommandTests {
  /// A worker's file with one credential, `a`, whose command is a shell script.
  private final class Stage: Sendable {
    let directory: TemporaryDirectory
    let file: CredentialFile
    let files = BlockingPool(name: "files", threads: 1)

    init(_ script: String, beside members: String = "", timeout: Duration = .seconds(30)) throws {
      directory = try TemporaryDirectory()
      file = CredentialFile(path: "\(directory.path)/c.json", commandTimeout: timeout)
      try set(script, beside: members)
    }

    deinit { files.shutdown() }

    /// The script may count its runs in the file `$0.runs`, for which `$0` is its own path.
    func set(_ script: String, beside members: String = "") throws {
      let path = "\(directory.path)/script"
      try TextFile.write("echo run >>\"$0.runs\"\n\(script)\n", to: path)
      let text = #"{"a": {"command": ["/bin/sh", "\#(path)", "argument-hidden"]\#(members)}}"#
      try TextFile.write(text, to: file.path, mode: 0o600)
    }

    func fields(refused: [HeaderField]? = nil) async throws(TaskFailure) -> [HeaderField] {
      guard let url = CurlURL("https://a.example/x") else { return [] }
      return try await Optional(file).fields(of: "a", for: url, on: files, refused: refused)
    }

    func s3() async throws -> S3Credential? {
      let command = try file.credentials()["a"]?.command
      return try await file.commands.credential("a", of: #require(command)) { _ in false }.s3
    }

    /// The process whose number the script has written to `$0.child`.
    var child: pid_t? {
      get throws { pid_t(try TextFile.read("\(directory.path)/script.child").filter(\.isNumber)) }
    }

    var runs: Int { (try? TextFile.read("\(directory.path)/script.runs").split(separator: "\n").count) ?? 0 }
  }

  private static func bearer(_ token: String, _ rest: String = "") -> String {
    #"echo '{"hosts": ["a.example"], "bearer": "\#(token)"\#(rest)}'"#
  }

  private static func time(_ seconds: Int64) -> String {
    "\(Timestamp(microseconds: Clocks.realtimeMicroseconds() + seconds * 1_000_000))"
  }

  @Test("a program is run once for many tasks, and what it printed is kept")
  func oneRunForMany() async throws {
    let stage = try Stage("sleep 0.2; \(Self.bearer("one"))")
    let all = try await withThrowingTaskGroup(of: [HeaderField].self) { group in
      for _ in 0..<20 { group.addTask { try await stage.fields() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(all.count == 20 && all.allSatisfy { $0 == [HeaderField(name: "Authorization", value: "Bearer one")] })
    #expect(stage.runs == 1)
  }

  @Test("a program runs again when its credential is about to end, was refused, or the file names another program")
  func runsAgain() async throws {
    let stage = try Stage(Self.bearer("one", #", "expiration": "\#(Self.time(3600))""#))
    let first = try await stage.fields()
    #expect(try await stage.fields() == first && stage.runs == 1)
    try stage.set(Self.bearer("two"))
    #expect(try await stage.fields() == first && stage.runs == 1)
    #expect(try await stage.fields(refused: first) == [HeaderField(name: "Authorization", value: "Bearer two")])
    #expect(try await stage.fields(refused: first) == [HeaderField(name: "Authorization", value: "Bearer two")])
    #expect(stage.runs == 2)
    try stage.set(Self.bearer("three"), beside: #", "allowHTTP": true"#)
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer three")])
    // Within the last five minutes a credential is kept for seconds only.
    try stage.set(Self.bearer("four", #", "expiration": "\#(Self.time(6))""#))
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer four")])
    let runs = stage.runs
    try await Task.sleep(for: .milliseconds(6100))
    try stage.set(Self.bearer("five"))
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer five")])
    #expect(stage.runs == runs + 1)
  }

  @Test("AWS's own form is merged with what stands beside the command")
  func awsForm() async throws {
    let keys = #""Version": 1, "AccessKeyId": "AK", "SecretAccessKey": "sk", "SessionToken": "t""#
    let end = Self.time(3600)
    let stage = try Stage(
      #"echo '{\#(keys), "Expiration": "\#(end)", "AccountId": "1"}'"#,
      beside:
        #", "s3": {"endpoint": "http://store:9000", "region": "eu-west-1", "pathStyle": false}, "allowHTTP": true"#)
    let s3 = try await stage.s3()
    #expect(
      s3
        == S3Credential(
          accessKeyID: "AK", secretAccessKey: "sk", sessionToken: "t", region: "eu-west-1",
          endpoint: "http://store:9000", pathStyle: false, allowsHTTP: true,
          expiresAt: try Timestamp(rfc3339: end)))
    let own = try Stage(
      #"echo '{"s3": {"accessKeyId": "AK", "secretAccessKey": "sk", "region": "eu-west-2"}}'"#,
      beside: #", "s3": {"region": "eu-west-1"}"#)
    #expect(try await own.s3() == S3Credential(accessKeyID: "AK", secretAccessKey: "sk", region: "eu-west-2"))
  }

  @Test("hosts beside a command are for what its program leaves out, and hold for keys as well")
  func hosts() async throws {
    let beside = #", "hosts": ["a.example"]"#
    let stage = try Stage(#"echo '{"bearer": "one"}'"#, beside: beside)
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer one")])
    let other = try Stage(#"echo '{"hosts": ["b.example"], "bearer": "one"}'"#, beside: beside)
    let refused = await #expect(throws: TaskFailure.self) { try await other.fields() }
    #expect(refused?.code == .credentialRefused)
    let keys = #"{"s3": {"accessKeyId": "k", "secretAccessKey": "s", "endpoint": "https://b.example"}}"#
    let elsewhere = try Stage("echo '\(keys)'", beside: beside)
    let unusable = await #expect(throws: UnusableFile.self) { try await elsewhere.s3() }
    #expect(unusable?.description.contains("they do not contain the endpoint's host") == true)
  }

  @Test("a program gets the worker's environment without the worker's settings")
  func environment() async throws {
    setenv("REELHAUL_TEST_SECRET", "x", 1)
    defer { unsetenv("REELHAUL_TEST_SECRET") }
    let script = #"echo "{\"hosts\": [\"a.example\"], \"bearer\": \"$HOME:$(env | grep -c ^REELHAUL_)\"}""#
    let stage = try Stage(script)
    let home = ProcessEnvironment.all["HOME"] ?? ""
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer \(home):0")])
  }

  @Test(
    "why a program gave no credential is told without secrets",
    arguments: [
      ("exit 3", "ended with exit 3"), ("kill -9 $$", "ended with signal 9"),
      ("echo the login is over >&2; exit 1", "exit 1: the login is over"),
      ("echo bearer-hidden; echo refused bearer-hidden >&2; exit 1", "exit 1: refused […]"),
      ("echo no $1 >&2; exit 1", "exit 1: no […]"),
      ("echo key hidden0ABCDEFGHIJ12345/hidden+x= >&2; exit 1", "exit 1: key […]"),
      ("true", "there is nothing to read"), ("echo hidden", "printed something else than a credential"),
      (#"echo '{"command": ["hidden"]}'"#, "command: expected hosts"),
      (#"echo '{"hosts": ["a.example"], "bearrer": "hidden"}'"#, "bearrer: expected hosts"),
      (#"echo '{"bearer": "hidden"}'"#, "\"hosts\" is missing"),
      (#"echo '{"Version": 2, "AccessKeyId": "hidden"}'"#, "Version: expected 1"),
      (#"echo '{"Version": 1, "SecretAccessKey": "hidden"}'"#, "\"AccessKeyId\" is missing"),
      (#"echo '{"hosts": ["a.example"], "bearer": "hidden", "expiration": "soon"}'"#, "expiration: expected a time"),
      (
        #"echo '{"hosts": ["a.example"], "bearer": "hidden", "expiration": "2001-01-01T00:00:00Z"}'"#,
        "has already expired, or the worker's clock is wrong"
      ),
      (#"echo '{"s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "endpoint": "http://s"}}'"#, "allowHTTP"),
      ("head -c 70000 /dev/zero", "printed more than 65536 bytes"),
    ])
  func failures(script: String, problem: String) async throws {
    let stage = try Stage(script)
    let failure = await #expect(throws: TaskFailure.self) { try await stage.fields() }
    #expect(failure?.code == .credentialsUnusable)
    #expect(failure?.class == .wait)
    let message = failure?.message ?? ""
    #expect(message.contains(problem), "\(message)")
    #expect(message.contains("\"a\"") && !message.contains("hidden"), "\(message)")
  }

  @Test("a program that cannot be started is told")
  func missingPrograms() async throws {
    let stage = try Stage("")
    try TextFile.write(#"{"a": {"command": ["/nowhere/p"]}}"#, to: stage.file.path, mode: 0o600)
    let failure = await #expect(throws: TaskFailure.self) { try await stage.fields() }
    #expect(failure?.message.contains("cannot be started: No such file") == true)
  }

  @Test("a program that takes too long is ended with its own children")
  func timeout() async throws {
    let stage = try Stage("sleep 1000 & echo $! >\"$0.child\"; wait", timeout: .seconds(5))
    let failure = await #expect(throws: TaskFailure.self) { try await stage.fields() }
    #expect(failure?.message.contains("did not end within 5 s") == true)
    let child = try #require(try stage.child)
    var isGone = false
    for _ in 0..<500 where !isGone {
      // A zombie of a container without an init counts as ended.
      let state = (try? TextFile.read("/proc/\(child)/stat"))?.split(separator: " ").dropFirst(2).first
      isGone = state == nil || state == "Z"
      if !isGone { try await Task.sleep(for: .milliseconds(10)) }
    }
    #expect(isGone)
  }

  @Test("who is canceled does not wait for a program, which goes on for the others")
  func canceled() async throws {
    let stage = try Stage("echo $$ >\"$0.child\"; until test -e \"$0.go\"; do sleep 0.02; done; \(Self.bearer("one"))")
    let other = Task { try await stage.fields() }
    try await eventually("the program runs") { (try? stage.child) != nil }
    let canceled = Task { try await stage.fields() }
    canceled.cancel()
    await #expect(throws: TaskFailure.self) { try await canceled.value }
    try TextFile.write("", to: "\(stage.directory.path)/script.go")
    #expect(try await other.value == [HeaderField(name: "Authorization", value: "Bearer one")])
    #expect(stage.runs == 1)
  }

  @Test("a child that a program leaves behind does not hold its credential up")
  func leftBehind() async throws {
    let stage = try Stage("sleep 60 & echo $! >\"$0.child\"; \(Self.bearer("one"))", timeout: .seconds(30))
    #expect(try await stage.fields() == [HeaderField(name: "Authorization", value: "Bearer one")])
    let child = try #require(try stage.child)
    #expect(kill(child, SIGKILL) == 0, "it is still there")
  }

  @Test("keys for s3 are not sent as header fields")
  func keysAreForS3() async throws {
    let stage = try Stage(#"echo '{"s3": {"accessKeyId": "k", "secretAccessKey": "s"}}'"#)
    let failure = await #expect(throws: TaskFailure.self) { try await stage.fields() }
    #expect(failure?.code == .credentialRefused)
  }
}
