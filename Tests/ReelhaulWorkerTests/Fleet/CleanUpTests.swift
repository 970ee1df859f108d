import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulWorker
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// What a handler's clean-up can do, and what it holds up.
@Suite(.serialized) struct CleanUpTests {
  /// Leaves a directory in a storage, and stays.
  private struct Leaver: TaskHandler {
    struct Parameters: Codable, Sendable {}
    struct Checkpoint: Codable, Sendable { var left: String }
    static let kind = "leaver"
    let root: String
    /// Those that do not return before it is open; by the URL that they shall remove.
    let hanging: Lock<Set<String>>

    func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput {
      let path = "\(root)/parts-\(context.id)"
      mkdir(path, 0o755)
      mkdir("\(path)/inner", 0o755)
      close(open("\(path)/inner/part", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
      try await context.checkpoint(Checkpoint(left: "storage://default/parts-\(context.id)"))
      while true { try await Task.sleep(for: .seconds(60)) }
    }

    func cleanUp(_ parameters: Parameters, after checkpoint: Checkpoint, storage: TaskStorage) async throws {
      while hanging.withLock({ $0.contains(checkpoint.left) }) { usleep(10_000) }
      try await storage.remove(checkpoint.left)
      // As when it is called again.
      try await storage.remove(checkpoint.left)
    }
  }

  private func leave(_ fleet: HandlerFleet, _ destination: String? = nil) async throws -> UniqueID {
    let task = try await fleet.submit("leaver") { $0.destination = destination }
    try await fleet.tests.eventually("it has left something") {
      guard try await fleet.store.task(task)?.state == .running else { return false }
      return try await !fleet.tests.pool.query(PostgresStatement("select from checkpoint where task_id = '\(task)'"))
        .isEmpty
    }
    return task
  }

  private func isGone(_ task: UniqueID, _ fleet: HandlerFleet) -> Bool {
    access(fleet.tests.path("/parts-\(task)"), F_OK) != 0
  }

  @Test("a clean-up removes what the runs of a canceled task left in a storage", .timeLimit(.minutes(5)))
  func removal() async throws {
    try await HandlerFleet.run { fleet in
      let handler = Leaver(root: fleet.tests.path(""), hanging: Lock([]))
      try await fleet.withWorker(handler) { _ in
        let task = try await leave(fleet)
        #expect(!isGone(task, fleet))
        try await fleet.control(.cancel, task)
        try await fleet.tests.eventually("it is removed") { isGone(task, fleet) }
        try await fleet.tests.eventually("the clean-up is over") {
          try await fleet.tests.pool.query("select from cleanup").isEmpty
        }
        #expect(access(fleet.tests.path(""), F_OK) == 0)
      }
    }
  }

  @Test("remove with files deletes what a run has published at the task's destination", .timeLimit(.minutes(5)))
  func publishedFile() async throws {
    try await HandlerFleet.run { fleet in
      let handler = Scripted<String>(body: { context in
        let file = try await context.scratch() + "/film"
        try TextFile.write("film", to: file)
        return try await context.transfer.publish(file, to: context.task.destination ?? "").location
      })
      try await fleet.withWorker(handler) { _ in
        let task = try await fleet.submit("scripted") { $0.destination = "storage://default/film.mp4" }
        try await fleet.tests.wait(for: task, .succeeded)
        #expect(access(fleet.tests.path("/film.mp4"), F_OK) == 0)
        try await fleet.control(.remove(files: true), task)
        try await fleet.tests.eventually("its file is gone", within: .seconds(60)) {
          access(fleet.tests.path("/film.mp4"), F_OK) != 0
        }
      }
    }
  }

  @Test(
    "a clean-up that hangs is given up in time, holds up none of another storage, and not the end of the worker",
    .timeLimit(.minutes(5)))
  func hanging() async throws {
    try await HandlerFleet.run { fleet in
      let other = "\(fleet.directory)/other"
      try Volume.initialise(name: "other", path: other)
      let handler = Leaver(root: fleet.tests.path(""), hanging: Lock([]))
      try await fleet.withWorker(
        handler,
        adjust: { configuration in
          configuration.storage["other"] = other
          configuration.settings.cleanUpLimit = .milliseconds(200)
        }
      ) { worker in
        let stuck = try await leave(fleet, "storage://other/x")
        handler.hanging.withLock { _ = $0.insert("storage://default/parts-\(stuck)") }
        let behind = try await leave(fleet, "storage://other/y")
        try await fleet.control(.cancel, stuck)
        try await fleet.tests.eventually("it is given up") {
          let rows = try await fleet.tests.pool.query("select error from cleanup where run_at > now()")
          return try rows.first?.text(0).contains("longer than") == true
        }
        #expect(await worker.hasHangingCalls)
        try await fleet.control(.cancel, behind)
        // Further rounds take what is not behind it.
        for _ in 0..<3 {
          let task = try await leave(fleet, "storage://default/x")
          try await fleet.control(.cancel, task)
          try await fleet.tests.eventually("another one is done") { isGone(task, fleet) }
        }
        #expect(!isGone(stuck, fleet) && !isGone(behind, fleet))
      }
      // Another worker goes on with both.
      handler.hanging.withLock { $0 = [] }
      _ = try await fleet.tests.pool.query("update cleanup set run_at = now()")
      try await fleet.withWorker(handler, adjust: { $0.storage["other"] = other }) { _ in
        try await fleet.tests.eventually("all are done") {
          try await fleet.tests.pool.query("select from cleanup").isEmpty
        }
      }
    }
  }
}
