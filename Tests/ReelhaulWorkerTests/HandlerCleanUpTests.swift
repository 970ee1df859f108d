import Glibc
import ReelhaulSystem
import ReelhaulTestKit
import TestKit
import Testing

/// Clean-ups of handlers, without a fleet.
@Suite struct HandlerCleanUpTests {
  private struct Leaver: TaskHandler {
    static let kind = "leaver"

    struct Parameters: Codable, Sendable {}
    struct Checkpoint: Codable, Equatable, Sendable {
      var left: String
    }

    let isAway: Lock<Bool>

    func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput {
      let file = try await context.scratch() + "/part"
      try TextFile.write("part", to: file)
      let left = "storage://default/parts/\(context.epoch)"
      _ = try await context.transfer.publish(file, to: left)
      try await context.checkpoint(Checkpoint(left: left))
      throw TaskError.retry("the encoder has no licence")
    }

    func cleanUp(_ parameters: Parameters, after checkpoint: Checkpoint, storage: TaskStorage) async throws {
      if isAway.withLock({ $0 }) { throw TaskError.retry("the registry is away", code: "away") }
      try await storage.remove(checkpoint.left)
    }
  }

  @Test("a canceled task's clean-up is carried out, again after an error, and only once")
  func cleanUp() async throws {
    let isAway = Lock(true)
    let test = try await HandlerTest(Leaver.Parameters()) { Leaver(isAway: isAway) }
    #expect(try await test.run().failure != nil)
    let part = "\(test.storagePath)/parts/1"
    #expect(access(part, F_OK) == 0)
    let error = await #expect(throws: TaskFailure.self) { try await test.cleanUp() }
    #expect(error?.code.rawValue == "away" && access(part, F_OK) == 0)
    isAway.withLock { $0 = false }
    #expect(try await test.cleanUp())
    #expect(access(part, F_OK) != 0)
    #expect(try await !test.cleanUp())
    #expect(try await test.state == .canceled)
    await test.close()
  }

  @Test("a task that has recorded nothing leaves no clean-up to its handler")
  func nothingLeft() async throws {
    let test = try await HandlerTest(Leaver.Parameters()) { Leaver(isAway: Lock(true)) }
    #expect(try await !test.cleanUp())
    await test.close()
  }
}
