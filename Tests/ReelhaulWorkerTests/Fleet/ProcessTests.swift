import Glibc
import ReelhaulSystem
import ReelhaulWorker
import TaskCore
import TaskStore
import TestKit
import Testing

/// Handlers of somebody's own in worker processes, over a real fleet.
@Suite(.serialized) struct ProcessTests {
  @Test(
    "a limit of a kind and its alias together holds over three workers, as declared and as set",
    .timeLimit(.minutes(10)))
  func limit() async throws {
    try await HandlerFleet.run { fleet in
      for _ in 0..<3 { try fleet.startWorker("gated") }

      /// Submits tasks under both names, and returns the most that ran at once.
      func most(_ gate: String, of limit: Int) async throws -> Int {
        let before = fleet.journal.count
        let parameters = #"{"journal": "\#(fleet.directory)", "gate": "\#(gate)"}"#
        var tasks: [UniqueID] = []
        for number in 0..<8 {
          tasks.append(try await fleet.submit(number.isMultiple(of: 2) ? "gated" : "formerly-gated", parameters))
        }
        try await fleet.tests.eventually("\(limit) run") {
          try await fleet.store.limits().first { $0.isOf(.kind, "gated") }?.running == limit
        }
        // Each worker is told of every submit, and asks.
        #expect(fleet.journal.count - before <= limit)
        fleet.mark(gate)
        try await fleet.tests.waitForSuccess(of: tasks)
        var (running, most) = (0, 0)
        for line in fleet.journal.dropFirst(before) {
          running += line.hasPrefix("begin") ? 1 : -1
          most = max(most, running)
        }
        #expect(running == 0)
        return most
      }
      let declared = try await most("first", of: 2)
      #expect(declared == 2)
      #expect(try await fleet.tests.run(["limit", "kind", "formerly-gated", "1"]).status == .exited(0))
      let former = try await most("second", of: 1)
      #expect(former == 1)
      #expect(try await fleet.tests.run(["limit", "kind", "gated", "3"]).status == .exited(0))
      let set = try await most("third", of: 3)
      #expect(set == 3)
      #expect(Set(fleet.journal) == ["begin gated", "begin formerly-gated", "end gated", "end formerly-gated"])
      #expect(try await fleet.store.audit() == [])
    }
  }

  @Test("after SIGKILL behind checkpoint 2 of 5, a run of another worker gets checkpoint 2", .timeLimit(.minutes(10)))
  func crash() async throws {
    try await HandlerFleet.run { fleet in
      for _ in 0..<2 { try fleet.startWorker("steps") }
      let task = try await fleet.submit("steps", #"{"journal": "\#(fleet.directory)", "stay": 2}"#)
      try await fleet.tests.eventually("checkpoint 2 is recorded") { fleet.journal == ["stays"] }
      let owner = try #require(try await fleet.tests.owner(of: task))
      owner.kill(SIGKILL)
      _ = await owner.wait()
      try await fleet.tests.endLease(of: owner)
      let document = try await fleet.tests.wait(for: task, .succeeded)
      #expect(document.outputText == #"{"first":2,"steps":5}"#)
      #expect(document.epoch == 2 && document.attempt == 1)
      #expect(try await fleet.kindsOfEvents(of: task) == [.submitted, .started, .released, .started, .succeeded])
    }
  }

  @Test(
    "a worker that was stopped beyond its lease cannot record a checkpoint, and its output is void",
    .timeLimit(.minutes(10)))
  func zombie() async throws {
    try await HandlerFleet.run(leaseSeconds: 15) { fleet in
      for _ in 0..<2 { try fleet.startWorker("zombie") }
      let task = try await fleet.submit("zombie", #"{"journal": "\#(fleet.directory)"}"#)
      try await fleet.tests.eventually("checkpoint 1 is recorded") { fleet.journal == ["stays"] }
      let owner = try #require(try await fleet.tests.owner(of: task))
      owner.kill(SIGSTOP)
      try await fleet.tests.eventually("another worker has it") { fleet.journal.count == 2 }
      let epoch = try #require(try await fleet.store.task(task)).epoch
      #expect(epoch > 1 && fleet.journal.last == "epoch \(epoch) after 1")
      owner.kill(SIGCONT)
      fleet.mark("go")
      try await fleet.tests.eventually("its checkpoint comes to something") { fleet.journal.count == 3 }
      #expect(fleet.journal.last == "threw OwnershipLostError")
      // Its run has ended when its drain has.
      owner.kill(SIGTERM)
      #expect(await owner.wait() == .exited(0))
      #expect(try await fleet.store.task(task)?.state == .running)
      fleet.mark("finish")
      let document = try await fleet.tests.wait(for: task, .succeeded)
      #expect(document.outputText == #"{"epoch":\#(epoch)}"# && document.epoch == epoch)
      #expect(try await fleet.kindsOfEvents(of: task) == [.submitted, .started, .released, .started, .succeeded])
    }
  }

  @Test(
    "old and new workers run side by side: a new field is ignored, a new kind waits, a renamed kind has both names",
    .timeLimit(.minutes(10)))
  func mixedFleet() async throws {
    try await HandlerFleet.run { fleet in
      let old = try fleet.startWorker("resize")
      func output(_ kind: String, _ parameters: String) async throws -> String? {
        try await fleet.tests.wait(for: fleet.submit(kind, parameters), .succeeded).outputText
      }
      // A producer of the new version knows a field that the old worker does not.
      #expect(try await output("resize", #"{"width": 1, "quality": 90}"#) == #"{"by":"old","width":1}"#)

      // The old worker is live and idle, and does not take what it does not know.
      let early = try await fleet.submit("scale", #"{"width": 2}"#)
      let after = try await fleet.submit("resize", #"{"width": 3}"#)
      try await fleet.tests.wait(for: after, .succeeded)
      let waiting = try await fleet.tests.run(["show", "\(early)"])
      #expect(waiting.output.contains("a handler for the kind scale"), "\(waiting.output)")
      #expect(try await fleet.store.task(early)?.epoch == 0)

      try fleet.startWorker("scale")
      let scaled = try await fleet.tests.wait(for: early, .succeeded).outputText
      #expect(scaled == #"{"by":"new","quality":80,"width":2}"#)
      var tasks: [UniqueID] = []
      for width in 0..<40 {
        tasks.append(try await fleet.submit(width.isMultiple(of: 2) ? "resize" : "scale", #"{"width": \#(width)}"#))
      }
      try await fleet.tests.waitForSuccess(of: tasks)

      old.kill(SIGTERM)
      let status = await old.wait()
      #expect(status == .exited(0))
      #expect(
        try await output("resize", #"{"width": 5, "quality": 70}"#) == #"{"by":"new","quality":70,"width":5}"#)
      #expect(try await fleet.store.audit() == [])
    }
  }
}
