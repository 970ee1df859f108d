import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Deletions on other servers, as a worker runs them.
@Suite struct RemoteDeleteTests {
  @Test("one DELETE deletes a resource of the web, and a second run finds it absent") func web() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      #expect(await bench.delete("/put/film.mp4") == .output(0, #"{"files":1}"#))
      #expect(bench.server.objects.isEmpty && bench.server.exchanges.count == 1)
      bench.server.always(.delete, .status(404))
      #expect(await bench.delete("/put/film.mp4") == .absent)
      bench.server.always(.delete, .status(410))
      #expect(await bench.delete("/put/film.mp4") == .absent)
    }
  }

  @Test("a deletion whose answer is lost is tried again, and then finds nothing") func lostAnswer() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      bench.server.always(.delete, .closeAfterApplying)
      #expect((await bench.delete("/put/film.mp4")).failure?.class == .retry)
      bench.server.always(.delete, .status(404))
      #expect(await bench.delete("/put/film.mp4") == .absent)
    }
  }

  @Test("a deletion shows its fields and its credential, also a renewed one") func credential() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      let change: (inout TaskSpec) -> Void = { spec in
        spec.credential = "web"
        spec.headers = [HeaderField(name: "X-Reason", value: "old")]
      }
      #expect(await bench.delete("/put/film.mp4", change) == .output(0, #"{"files":1}"#))
      let first = bench.server.exchanges(.delete).last
      #expect(first?.request["authorization"] == "Bearer a" && first?.request["x-reason"] == "old")
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      bench.server.script { request in
        guard request["authorization"] == "Bearer a" else { return [] }
        try? bench.renew(bearer: "b")
        return [.status(401)]
      }
      #expect(await bench.delete("/put/film.mp4", change) == .output(0, #"{"files":1}"#))
      #expect(bench.server.exchanges(.delete).last?.request["authorization"] == "Bearer b")
    }
  }

  @Test("an expected size is compared before anything is deleted") func size() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      let other = (await bench.delete("/put/film.mp4") { $0.expect.bytes = 5 }).failure
      #expect(other?.code == .sizeMismatch && other?.class == .fail)
      bench.server.always(.head, .header("Content-Length", nil))
      let unknown = (await bench.delete("/put/film.mp4") { $0.expect.bytes = 4 }).failure
      #expect(unknown?.code == .lengthUnknown && unknown?.class == .fail)
      #expect(bench.server.exchanges(.delete).isEmpty)
      bench.server.script { _ in [] }
      #expect(await bench.delete("/put/film.mp4") { $0.expect.bytes = 4 } == .output(4, #"{"files":1,"bytes":4}"#))
      #expect(bench.server.exchanges(.delete).last?.request["if-match"] != nil)
      #expect(await bench.delete("/put/film.mp4") { $0.expect.bytes = 4 } == .absent)
    }
  }

  @Test("what changes between the look and the DELETE stays for another attempt") func changes() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      bench.server.always(.delete, .status(412))
      let failure = (await bench.delete("/put/film.mp4") { $0.expect.bytes = 4 }).failure
      #expect(failure?.code == .http(412) && failure?.class == .retry)
    }
  }

  @Test("a digest is refused, because nobody can compare it without the bytes") func digests() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      for change: (inout TaskSpec) -> Void in [
        { $0.expect.sha256 = Array(repeating: 1, count: 32) }, { $0.expect.md5 = Array(repeating: 1, count: 16) },
      ] {
        let failure = (await bench.delete("/put/film.mp4", change)).failure
        #expect(failure?.code == .parametersInvalid && failure?.class == .fail)
      }
      #expect(bench.server.exchanges.isEmpty)
    }
  }

  @Test("only 307 and 308 to the same server are followed") func redirects() async throws {
    try await RemoteDeleteBench.run { bench in
      for (status, isFollowed) in [(307, true), (308, true), (301, false), (302, false), (303, false)] {
        bench.server.put("put/new.mp4", bytes: [1])
        let target = bench.server.url("/put/new.mp4")
        bench.server.script { $0.path == "/put/film.mp4" ? [.redirect(to: target, status: status)] : [] }
        let outcome = await bench.delete("/put/film.mp4")
        #expect(isFollowed ? outcome == .output(0, #"{"files":1}"#) : outcome.failure?.code == .redirectRefused)
        #expect((bench.server.objects["put/new.mp4"] == nil) == isFollowed)
      }
      let other = try StoreServer()
      defer { other.close() }
      bench.server.always(.delete, .redirect(to: other.url("/put/film.mp4"), status: 307))
      #expect((await bench.delete("/put/film.mp4")).failure?.code == .redirectRefused)
      #expect(other.exchanges.isEmpty)
      bench.server.always(.delete, .redirect(to: bench.server.url("/put/film.mp4"), status: 308))
      #expect((await bench.delete("/put/film.mp4")).failure?.code == .redirectLoop)
    }
  }

  @Test(
    "a status that proves no deletion is a failure",
    arguments: [
      (405, TaskFailure.Class.fail), (501, .fail), (403, .fail), (207, .fail), (500, .retry), (503, .retry),
      (423, .wait),
    ])
  func refused(status: Int, class: TaskFailure.Class) async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.always(.delete, .status(status))
      let failure = (await bench.delete("/put/film.mp4")).failure
      #expect(failure?.class == `class` && failure?.message.contains("\(status)") == true)
    }
  }

  @Test("an upload of tus is ended, and absent afterwards") func tus() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("tus/7", bytes: Array("film".utf8))
      let wrong = (await bench.delete("/tus/7", scheme: "tus+") { $0.expect.bytes = 5 }).failure
      #expect(wrong?.code == .sizeMismatch)
      #expect(
        await bench.delete("/tus/7", scheme: "tus+") { $0.expect.bytes = 4 } == .output(4, #"{"files":1,"bytes":4}"#))
      #expect(bench.server.objects.isEmpty)
      #expect(bench.server.exchanges(.tusDelete).last?.request["tus-resumable"] == "1.0.0")
      #expect(await bench.delete("/tus/7", scheme: "tus+") == .absent)
    }
  }

  @Test("a server of tus without termination fails the task") func noTermination() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.tusExtensions = ["creation"]
      bench.server.put("tus/7", bytes: Array("film".utf8))
      let failure = (await bench.delete("/tus/7", scheme: "tus+")).failure
      #expect(failure?.class == .fail && failure?.message.contains("does not end uploads") == true)
      #expect(bench.server.objects.count == 1)
    }
  }

  @Test("a storage root that does not answer holds it up no more than others") func hangingRoot() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      let root = try #require(bench.roots["default"])
      let gate = Condition(false)
      let wait = { @Sendable in gate.wait(until: { $0 }, then: { _ in }) }
      let hanging = Task { try await root.loop.run { wait() } }
      let isOver = Lock(false)
      let deletion = Task {
        defer { isOver.withLock { $0 = true } }
        return await bench.delete("/put/film.mp4")
      }
      try? await eventually("it is deleted") { isOver.withLock { $0 } }
      #expect(isOver.withLock { $0 })
      gate.withLock { $0 = true }
      gate.broadcast()
      try await hanging.value
      #expect(await deletion.value == .output(0, #"{"files":1}"#))
    }
  }

  @Test("a worker needs no storage root for it") func noRoots() async throws {
    try await RemoteDeleteBench.run(hasRoot: false) { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      #expect(await bench.delete("/put/film.mp4") == .output(0, #"{"files":1}"#))
      #expect(bench.server.objects.isEmpty)
    }
  }

  @Test("nothing is deleted once the fence is closed or the task is lost", arguments: [true, false])
  func fence(closes: Bool) async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("put/film.mp4", bytes: Array("film".utf8))
      let outcome = await bench.delete("/put/film.mp4") { _ in
      } ledger: {
        if closes { $0.lease.fence.close() } else { $0.disown() }
      }
      #expect(outcome == .stopped && bench.server.exchanges.isEmpty)
    }
  }

  @Test("a deletion that waits for a connection is not sent once the task is lost", arguments: [false, true])
  func lostInLine(isTus: Bool) async throws {
    try await RemoteDeleteBench.run(hostConnections: 1) { bench in
      let key = isTus ? "tus/7" : "put/film.mp4"
      let gate = OriginGate()
      bench.server.put("put/other.mp4", bytes: [1])
      bench.server.put(key, bytes: [1])
      bench.server.script { $0.path == "/put/other.mp4" ? [.holdAnswer(gate)] : [] }
      let other = Task { await bench.delete("/put/other.mp4") }
      await gate.reached()
      let ledger = Lock<RunLedger?>(nil)
      let run = Task {
        await bench.delete("/\(key)", scheme: isTus ? "tus+" : "") { _ in
        } ledger: { made in
          ledger.withLock { $0 = made }
        }
      }
      // A worker hands back tasks that stand in line for long, so that they take no places.
      try await eventually("it stands in line") { ledger.withLock { $0?.line.place.isInLine == true } }
      ledger.withLock { $0?.disown() }
      gate.open()
      #expect(await run.value == .stopped)
      _ = await other.value
      #expect(bench.server.objects.count == 1)
    }
  }

  @Test("a run that is stopped while the server does not answer ends") func stop() async throws {
    try await RemoteDeleteBench.run { bench in
      let gate = OriginGate()
      bench.server.always(.delete, .holdAnswer(gate))
      let run = Task { await bench.delete("/put/film.mp4") }
      _ = await bench.server.first { $0.operation == .delete }
      run.cancel()
      #expect(await run.value == .stopped)
      gate.open()
    }
  }
}
