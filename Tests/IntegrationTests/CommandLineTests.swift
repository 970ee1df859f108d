import Glibc
import ReelhaulClient
import ReelhaulCodec
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Uses the command line as a person does: output, exit codes, effects.
@Suite struct CommandLineTests {
  @Test("a download can be waited for, shown and listed")
  func aDownloadIsWaitedForShownAndListed() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let file = OriginFile(seed: 5, size: 2_000_000)
    fleet.origin.serve("/talk.mp4", file)
    let sum = Hex.encode(file.content.sha256(size: file.size))
    let done = try await fleet.run([
      "download", fleet.origin.url("/talk.mp4"), "--sha256", sum, "--label", "title=A talk", "--wait", "--json",
    ])
    #expect(done.status == .exited(0))
    #expect(done.output.contains("\"state\":\"succeeded\""))
    #expect(done.output.contains("\"sha256\":\"\(sum)\""))
    #expect(try TestFleet.contents(fleet.path("/talk.mp4")) == file.content.bytes(0..<file.size))
    let list = try await fleet.run(["list", "--json", "--state", "succeeded"])
    #expect(list.output.hasPrefix("[{\"id\":\""))
    #expect(try await fleet.run(["list", "--state", "retrying"]).status == .exited(0))
    let word = try await fleet.run(["list", "--state", "cancelled"])
    #expect(word.status == .exited(2) && word.output.contains("did you mean canceled?"), "\(word.output)")
    let workers = try await fleet.run(["workers"])
    #expect(workers.status == .exited(0))
    let doctor = try await fleet.run(["doctor"])
    #expect(doctor.status == .exited(0), "\(doctor.output)")
    await fleet.stop()
  }

  @Test("a server that does not say where its file ends needs --allow-unframed, and show says what proved the file")
  func aFileWithoutAnEndIsProven() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let file = OriginFile(seed: 6, size: 300_000)
    let film = MP4.file(media: 300_000)
    fleet.origin.serve("/talk.bin", file)
    fleet.origin.always("/talk.bin", .unframed())
    fleet.origin.serve("/film.mp4", file)
    fleet.origin.always("/film.mp4", .unframed(film))
    fleet.origin.serve("/cut.bin", file)
    fleet.origin.script("/cut.bin") { [.unframed(), .cut(after: Int64(1000 * $0.number))] }

    let refused = try await fleet.run(["download", fleet.origin.url("/talk.bin"), "--wait"])
    #expect(refused.status == .exited(1))
    #expect(
      refused.output.contains("length_unknown") && refused.output.contains("--allow-unframed"), "\(refused.output)")
    let differing = try await fleet.run([
      "download", fleet.origin.url("/cut.bin"), "--allow-unframed", "--max-attempts", "1", "--wait",
    ])
    #expect(differing.status == .exited(1))
    #expect(differing.output.contains("fetches_differ"), "\(differing.output)")
    #expect(access(fleet.path("/cut.bin"), F_OK) != 0)

    for (name, bytes, proof) in [
      ("/talk.bin", file.content.bytes(0..<file.size), "two_fetches"), ("/film.mp4", film, "container"),
    ] {
      let id = UniqueID.random()
      let done = try await fleet.run([
        "download", fleet.origin.url(name), "--id", "\(id)", "--allow-unframed", "--wait", "--json",
      ])
      #expect(done.status == .exited(0), "\(done.output)")
      #expect(done.output.contains("\"output\":{\"verified\":\"\(proof)\"}"), "\(done.output)")
      #expect(done.output.contains("\"allowUnframed\":true"), "\(done.output)")
      #expect(try TestFleet.contents(fleet.path(name)) == bytes)
      let shown = try await fleet.run(["show", "\(id)"])
      #expect(shown.output.contains("{\"verified\":\"\(proof)\"}"), "\(shown.output)")
    }
    await fleet.stop()
  }

  @Test("a file is deleted once, and the second delete says that it was absent")
  func aFileIsDeletedOnce() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let path = fleet.path("/old.mp4")
    try FileDescriptor.open(path, O_WRONLY | O_CREAT).write("film", at: 0)
    let words = ["delete", "storage://default/old.mp4", "--wait", "--json"]
    let wrong = try await fleet.run(words + ["--bytes", "5"])
    #expect(wrong.status == .exited(1) && wrong.output.contains("size_mismatch"), "\(wrong.output)")
    #expect(access(path, F_OK) == 0)
    let done = try await fleet.run(words)
    #expect(done.status == .exited(0), "\(done.output)")
    #expect(done.output.contains(#""state":"succeeded""#), "\(done.output)")
    #expect(done.output.contains(#""output":{"files":1,"bytes":4}"#), "\(done.output)")
    #expect(access(path, F_OK) != 0)
    let again = try await fleet.run(words)
    #expect(again.status == .exited(0))
    #expect(again.output.contains(#""output":{"files":0,"bytes":0,"absent":true}"#), "\(again.output)")
    // A directory goes only with a word more.
    #expect(mkdir(fleet.path("/talks"), 0o755) == 0)
    try FileDescriptor.open(fleet.path("/talks/a.mp4"), O_WRONLY | O_CREAT).write("film", at: 0)
    let directory = ["delete", "storage://default/talks", "--wait", "--json"]
    let kept = try await fleet.run(directory)
    #expect(kept.status == .exited(1) && kept.output.contains("is_directory"), "\(kept.output)")
    #expect(access(fleet.path("/talks/a.mp4"), F_OK) == 0)
    #expect(try await fleet.run(directory + ["--recursive"]).status == .exited(0))
    #expect(access(fleet.path("/talks"), F_OK) != 0)
    await fleet.stop()
  }

  @Test("a worker trusts the given certificate authorities, and an unusable file is a usage error")
  func aWorkerTrustsTheAuthoritiesItIsGiven() async throws {
    let authority = try TestCertificates.shared.get().authority
    let fleet = try await TestFleet.start(
      workers: 1, environment: ["REELHAUL_CA_FILE": authority, "REELHAUL_RATE": "100MB"])
    fleet.origin.serve("/talk.mp4", OriginFile(seed: 5, size: 2_000_000))
    let relay = try TLSRelay(to: fleet.origin.port)
    defer { relay.close() }
    #expect(try await fleet.run(["download", relay.url("/talk.mp4"), "--wait"]).status == .exited(0))
    let doctor = try await fleet.run(["doctor"])
    #expect(doctor.status == .exited(0))
    #expect(doctor.output.contains("certificates: 1"), "\(doctor.output)")
    for wrong in [["--ca-file", "/nonexistent"], ["--credentials", "/nonexistent"], ["--credentials", authority]] {
      let worker = try await fleet.run(["worker"] + wrong)
      #expect(worker.status == .exited(2))
      #expect(worker.output.contains(wrong[1]), "\(worker.output)")
      #expect(try await fleet.run(["doctor"] + wrong).status == .exited(2))
    }
    await fleet.stop()
  }

  @Test("exit codes tell failed, refused, missing and canceled tasks apart")
  func exitCodesTellWhatHappened() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let url = fleet.origin.url("/absent.mp4")
    let absent = try await fleet.run(["download", url, "--wait"])
    #expect(absent.status == .exited(1) && absent.output.contains("once what it names is there"), "\(absent.output)")
    #expect(try await fleet.run(["download", "ftp://127.0.0.1/a"]).status == .exited(2))
    #expect(try await fleet.run(["downlaod", url]).output.contains("download"))
    #expect(try await fleet.run(["download", url, "--priority", "many"]).status == .exited(2))
    #expect(try await fleet.run(["show", "\(UniqueID.make())"]).status == .exited(4))
    #expect(try await fleet.run(["pause", "\(UniqueID.make())"]).status == .exited(4))
    let added = try await fleet.run(["download", url, "--paused", "--to", "storage://default/later.mp4"])
    let id = try #require(UniqueID(added.output.split(separator: "\n").last.map(String.init) ?? ""))
    try await fleet.wait(for: id, .paused)
    let refused = try await fleet.run(["pause", "\(id)"])
    #expect(refused.status == .exited(5) && refused.output.contains("'reelhaul resume \(id)'"), "\(refused.output)")
    // Nothing is sent unless all can have it.
    #expect(try await fleet.run(["cancel", "\(id)", "\(UniqueID.random())"]).status == .exited(4))
    #expect(try await fleet.store.task(id)?.state == .paused)
    // Sending a task needs no PostgreSQL.
    let sent = try await fleet.run(["download", url, "--json", "--postgres", "postgres://nobody@127.0.0.1:9/none"])
    #expect(sent.status == .exited(0) && sent.output.contains("{\"id\":\""), "\(sent.output)")
    #expect(try await fleet.run(["cancel", "\(id)", "--wait"]).status == .exited(0))
    #expect(try await fleet.store.task(id)?.state == .canceled)
    // By its id, and by the end of it: one command.
    let twice = try await fleet.run(["remove", "\(id)", "\("\(id)".suffix(12))", "--wait"])
    #expect(twice.status == .exited(0), "\(twice.output)")
    await fleet.stop()
  }

  @Test("watch --once prints the named tasks and ends, however long they last")
  func watchesOnce() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let id = try await fleet.download("/a.mp4") { $0.paused = true }
    for words in [["watch", "\(id)", "--once", "--json"], ["watch", "\(id)", "--once"]] {
      let once = try await fleet.run(words)
      #expect(once.status == .exited(0) && once.output.contains("paused"), "\(once.output)")
    }
    await fleet.stop()
  }

  @Test("watch on a pipe prints each task once it has ended, also those that end at once")
  func watchesShortTasks() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let ended = try await fleet.run(["submit", "noop", "--wait", "--json"])
    #expect(ended.status == .exited(0), "\(ended.output)")
    let paused = try await fleet.download("/a.mp4") { $0.paused = true }
    try await fleet.wait(for: paused, .paused)
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(directory.path)/out"
    let process = try ChildProcess(TestFleet.binary, ["watch"], options)
    func lines() throws -> [Substring] {
      String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self).split(separator: "\n")
    }
    try await fleet.eventually("it has begun") { try lines().contains { $0.hasPrefix("\(paused)") } }
    let ids = (0..<8).map { _ in "\(UniqueID.make())" }
    for id in ids { #expect(try await fleet.run(["submit", "noop", "--id", id]).status == .exited(0)) }
    try await fleet.eventually("it has told of all") {
      let told = try lines().filter { $0.contains(" succeeded ") }.map { String($0.prefix(36)) }
      // None twice, and none of those that had ended before.
      return told.sorted() == ids.sorted()
    }
    process.kill(SIGINT)
    _ = await process.wait()
    await fleet.stop()
  }

  /// Otherwise it would wait for ever without a visible reason.
  @Test("--wait tells that a predecessor has failed")
  func waitingTellsOfAFailedPredecessor() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let first = try await fleet.download("/absent.mp4")
    _ = try await fleet.run(["watch", "\(first)"])
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(directory.path)/out"
    options.stderr = options.stdout
    let url = fleet.origin.url("/a.mp4")
    let second = UniqueID.make()
    let paused = try await fleet.download("/b.mp4") { $0.paused = true }
    for words in [
      ["download", url, "--id", "\(second)", "--after", "\(first)", "--wait", "--json"],
      ["watch", "\(second)", "\(paused)"],
    ] {
      unlink("\(directory.path)/out")
      let process = try ChildProcess(TestFleet.binary, words, options)
      try await fleet.eventually("it names what stands in the way") {
        String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self)
          .contains("waits for \(first) (failed: 'reelhaul retry \(first)')")
      }
      process.kill(SIGINT)
      _ = await process.wait()
    }
    let shown = try await fleet.run(["show", "\(second)", "--json"])
    #expect(shown.output.contains(#""waits":"for \#(first) (failed:"#), "\(shown.output)")
    #expect(try await fleet.run(["list", "--json", "--state", "blocked"]).output == "[\(shown.output.dropLast())]\n")
    await fleet.stop()
  }

  @Test("download fails if its --id belongs to a different task, and names the differences")
  func anIDThatIsAnotherTasksIsTold() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    fleet.origin.serve("/a.mp4", OriginFile(seed: 1, size: 1000))
    let id = [
      "--id", "\(UniqueID.make())", "--wait", "-H", "B: 1", "-H", "A: 2", "--label", "title=A", "--not-before",
      "2020-01-01T00:00:00Z",
    ]
    let words = ["download", fleet.origin.url("/a.mp4")] + id
    #expect(try await fleet.run(words).status == .exited(0))
    #expect(try await fleet.run(words).status == .exited(0), "the same twice is one task")
    let other = try await fleet.run(
      ["download", fleet.origin.url("/b.mp4"), "--sha256", String(repeating: "0", count: 64)] + id)
    #expect(other.status == .exited(1))
    #expect(other.output.contains("is different: source, destination, expect"), "\(other.output)")
    let unawaited = ["download", fleet.origin.url("/b.mp4"), "--json"] + id.filter { $0 != "--wait" }
    let sent = try await fleet.run(unawaited)
    #expect(sent.status == .exited(1))
    #expect(sent.output.hasPrefix("error: task ") && sent.output.contains("is different: source"), "\(sent.output)")
    #expect(!sent.output.contains("{"), "a document of no task: \(sent.output)")
    await fleet.stop()
  }

  @Test("tasks are named by the last digits of their ids; an ending of several ids lists their tasks")
  func tasksAreNamedByTheEndsOfTheirIDs() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let url = fleet.origin.url("/absent.mp4")
    let ids = ["1aabcdef", "2aabcdef"].map { "019adf3e-5a00-7cc1-9d3e-6d2f\($0)" }
    for (index, id) in ids.enumerated() {
      let to = "storage://default/\(index).mp4"
      #expect(try await fleet.run(["download", url, "--id", id, "--paused", "--to", to]).status == .exited(0))
      try await fleet.wait(for: #require(UniqueID(id)), .paused)
    }
    let shown = try await fleet.run(["show", "2AABCDEF", "--json"])
    #expect(shown.status == .exited(0) && shown.output.contains(ids[1]), "\(shown.output)")
    let several = try await fleet.run(["cancel", "aabcdef"])
    #expect(several.status == .exited(2))
    for id in ids { #expect(several.output.contains("\(id) download paused \(url)"), "\(several.output)") }
    #expect(try await fleet.run(["show", "bbcdef"]).status == .exited(4))
    #expect(try await fleet.run(["show", "bcdef"]).status == .exited(2))
    let after = try await fleet.run(["download", url, "--after", "1aabcdef", "--to", "storage://default/2.mp4"])
    let follower = try #require(UniqueID(after.output.split(separator: "\n").last.map(String.init) ?? ""))
    try await fleet.wait(for: follower, .blocked)
    let predecessor = try #require(UniqueID(ids[0]))
    #expect(try await fleet.store.task(follower)?.spec.after == [predecessor])
    #expect(try await fleet.run(["cancel", "1aabcdef", "--wait"]).status == .exited(0))
    #expect(try await fleet.store.task(predecessor)?.state == .canceled)
    let refused = try await fleet.run(["cancel", "2aabcdef"], environment: ["REELHAUL_POSTGRES": ""])
    #expect(refused.status == .exited(2) && refused.output.contains("needs PostgreSQL"), "\(refused.output)")
    await fleet.stop()
  }

  @Test("limits are set, shown and removed, and tell why a task waits")
  func limitsAreSetAndSeen() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    #expect(try await fleet.run(["limit", "host", "127.0.0.1", "0"]).status == .exited(0))
    let set = try await fleet.run(["limit", "queue", "slow", "3", "--json"])
    let document = #"{"scope":"queue","name":"slow","running":0,"limit":3,"room":3,"declared":null,"weight":1"#
    #expect(set.output.hasPrefix(document))
    let typo = try await fleet.run(["limit", "kind", "downlaod", "3"])
    #expect(typo.status == .exited(0) && typo.output.contains("did you mean download?"), "\(typo.output)")
    #expect(try await fleet.run(["weight", "slow", "0.5", "--json"]).output.contains("\"weight\":0.5"))
    let list = try await fleet.run(["limits", "--json"])
    #expect(list.output.hasPrefix("[{") && list.output.contains("\"limit\":0,"))
    #expect(try await fleet.run(["limit", "total", "fleet", "3"]).status == .exited(2))
    #expect(try await fleet.run(["limit", "host", "3"]).status == .exited(2))
    let negative = try await fleet.run(["limit", "queue", "slow", "-1"])
    #expect(negative.status == .exited(2) && negative.output.contains("from 0 to 1000000"), "\(negative.output)")
    fleet.origin.serve("/a.mp4", OriginFile(seed: 1, size: 1000))
    let added = try await fleet.run(["download", fleet.origin.url("/a.mp4")])
    let id = try #require(UniqueID(added.output.split(separator: "\n").last.map(String.init) ?? ""))
    try await fleet.wait(for: id, .queued)
    #expect(try await fleet.run(["show", "\(id)"]).output.contains("the limit of host 127.0.0.1 is 0"))
    #expect(try await fleet.run(["doctor"]).output.contains("0 of host 127.0.0.1"))
    #expect(try await fleet.run(["limit", "host", "127.0.0.1", "none"]).status == .exited(0))
    try await fleet.wait(for: id, .succeeded)
    #expect(try await fleet.run(["doctor", "--audit"]).output.contains("every counter is right"))
    await fleet.stop()
  }

  @Test(
    "output that cannot be written and wrong words end with the right exit code",
    arguments: [
      // If the result cannot be written, the command has failed.
      ("reelhaul completions bash >/dev/full", 1, "write to standard output"),
      ("reelhaul completions bash >&-", 1, "write to standard output"),
      ("reelhaul show $'\\xff'", 2, "is not UTF-8"),
      ("reelhaul pause $'\\x1b[2J'", 2, "\"\u{FFFD}[2J\" is not a task id"),
      ("REELHAUL_STORAGE=$'default=/\\xff' reelhaul worker", 2, "the value of REELHAUL_STORAGE is not UTF-8"),
      ("reelhaul list --config <(printf 'REELHAUL_KAFKA=\\xff')", 2, "is not UTF-8"),
      ("reelhaul batch /", 2, "/ is a directory"),
      ("reelhaul batch - </", 2, "- is a directory"),
      ("unset ${!REELHAUL_@}; reelhaul doctor >&2", 2, "no Kafka is configured"),
      ("reelhaul up --data-dir data --postgres postgress://h/d", 2, "Correct --postgres.\n"),
      ("reelhaul up --workers 0 --data-dir a,b; code=$?; [ -e a,b ] || exit $code", 2, "must not contain a comma"),
      ("unset ${!REELHAUL_@}; REELHAUL_POSTGRESQL=x reelhaul list", 2, "did you mean REELHAUL_POSTGRES?"),
      (
        "unset ${!REELHAUL_@}; REELHAUL_KAKFA=x reelhaul download http://a.example/f", 2, "did you mean REELHAUL_KAFKA?"
      ),
      ("reelhaul token list --scope write", 2, "--scope belongs to 'create'"),
      ("reelhaul token list --name ci", 2, "--name belongs to 'create' and 'revoke'"),
      ("reelhaul token revoke ci --name other", 2, "--name is another name for ci"),
      ("reelhaul dead-letters drop 1-1 -n 5", 2, "--limit belongs to 'list'"),
      ("reelhaul list --postgres postgress://u:secret@h/d", 2, "must be postgres://"),
    ])
  func standardStreamsAndWordsAreChecked(_ line: String, _ code: Int32, _ message: String) async throws {
    let (status, error) = try await Self.shell(line)
    #expect(status == .exited(code))
    #expect(error.contains(message) && !error.contains("secret"), "\(error)")
  }

  /// Runs a line of bash in a new directory; returns its end, and what it says on standard error.
  private static func shell(
    _ line: String, environment: [String: String] = [:]
  ) async throws -> (status: ReelhaulSystem.ExitStatus, error: String) {
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.environment = environment
    options.stderr = "\(directory.path)/error"
    options.workingDirectory = directory.path
    let script = "reelhaul() { \(TestFleet.binary) \"$@\"; }; \(line)"
    let status = await (try ChildProcess("bash", ["-c", script], options)).wait()
    return (status, String(decoding: try TestFleet.contents("\(directory.path)/error"), as: UTF8.self))
  }

  @Test("what was done is told on standard error if its result cannot be printed")
  func anUnprintedResultIsTold() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    func run(_ line: String) async throws -> (status: ReelhaulSystem.ExitStatus, error: String) {
      try await Self.shell(line, environment: fleet.environment)
    }
    let gone = "exec > >(:); wait $!; "
    for (before, line, code) in [
      ("", ">/dev/full", 1), ("", ">&-", 1), ("", "--json >/dev/full", 1), ("", "--wait >/dev/full", 1),
      (gone, "", 141),
    ] {
      let (status, error) = try await run("\(before)reelhaul download http://a.example/a.mp4 --paused \(line)")
      let found = error.firstMatch(of: /Task ([0-9a-f-]{36}) was sent/)
      let id = try #require(found.flatMap { UniqueID("\($0.1)") }, "\(error)")
      try await fleet.wait(for: id, .paused)
      #expect(status == .exited(Int32(code)) && error.contains("write to standard output") == (code == 1), "\(error)")
    }
    let (status, error) = try await run("reelhaul token create --scope read --name ci >/dev/full")
    #expect(status == .exited(1) && error.contains("The token ci was made"), "\(error)")
    let id = try #require(error.firstMatch(of: /'reelhaul token revoke ([0-9a-f-]{36})'/)?.1, "\(error)")
    #expect(try await run("reelhaul token revoke \(id)").status == .exited(0))
    await fleet.stop()
  }

  @Test("a submit with the id of a removed task ends with a clear error, whether it waits or prints the task")
  func aRemovedIDIsTold() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let id = "\(UniqueID.make())"
    #expect(try await fleet.run(["submit", "noop", "--id", id, "--paused"]).status == .exited(0))
    #expect(try await fleet.run(["cancel", id, "--wait"]).status == .exited(0))
    #expect(try await fleet.run(["remove", id, "--wait"]).status == .exited(0))
    for option in ["--wait", "--json"] {
      let again = try await fleet.run(["submit", "noop", "--id", id, option])
      #expect(again.status == .exited(5), "\(option) \(again.output)")
      #expect(again.output.contains("the task \(id) was removed"), "\(again.output)")
    }
    await fleet.stop()
  }

  @Test("Ctrl-C ends --wait and not the task")
  func anInterruptEndsTheWaitingAndNotTheTask() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(directory.path)/out"
    options.stderr = options.stdout
    let id = UniqueID.make()
    let words = ["download", fleet.origin.url("/a.mp4"), "--id", "\(id)", "--paused", "--wait"]
    let process = try ChildProcess(TestFleet.binary, words, options)
    func output() throws -> String {
      String(decoding: (try? TestFleet.contents("\(directory.path)/out")) ?? [], as: UTF8.self)
    }
    try await eventually("it says what to do") {
      try output().contains("is paused: 'reelhaul resume \(id)' continues it.")
    }
    process.kill(SIGINT)
    #expect(await process.wait() == .signaled(SIGINT))
    #expect(try output().contains("The task does not change: 'reelhaul watch \(id)' follows"))
    #expect(try await fleet.run(["resume", "\(id)", "--wait"]).output == "", "who resumes it is not told to")
    await fleet.stop()
  }

  @Test("batch names its wrong lines and sends the others")
  func aBatchNamesItsBadLines() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/lines"
    let lines = (0..<500).map { _ in "{\"kind\":\"noop\",\"source\":\"noop://host/\"}" }
    let text = Array(
      (lines[..<300] + ["{\"kind\":\"noop\"", "{\"source\":\"ftp://x/\"}"] + lines[300...]).joined(separator: "\n").utf8
    )
    let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT)
    try text.withUnsafeBytes { try file.write($0, at: 0) }
    let result = try await fleet.run(["batch", path])
    #expect(result.status == .exited(2))
    #expect(result.output.contains("line 301: "))
    #expect(result.output.contains("line 302: "))
    let ids = result.output.split(separator: "\n").compactMap { UniqueID(String($0)) }
    #expect(ids.count == 500)
    try await fleet.waitForSuccess(of: ids)
    await fleet.stop()
  }
}
