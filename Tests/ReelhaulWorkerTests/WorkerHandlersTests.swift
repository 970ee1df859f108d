import ReelhaulTestKit
import Testing

@Suite struct WorkerHandlersTests {
  /// A handler for a kind that every worker has.
  private struct OwnDownload: TaskHandler {
    struct Parameters: Codable, Sendable {}
    static let kind = "download"

    func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput { NoOutput() }
  }

  @Test("a worker with two handlers for one kind does not start, and its error names both")
  func duplicates() async throws {
    // Nobody listens there: the handlers are looked at before anything is asked for.
    let environment = ["REELHAUL_KAFKA": "127.0.0.1:1", "REELHAUL_POSTGRES": "postgres://a@127.0.0.1:1/a"]
    for (handlers, kind) in [
      ([Stepper(), Stepper()] as [any TaskHandler], "stepper"), ([OwnDownload()], "download"),
    ] {
      let error = await #expect(throws: WorkerError.self) {
        try await ReelhaulWorker.run(handlers: handlers, environment: environment)
      }
      #expect(error?.code == 2)
      #expect(error?.message.contains("the kind \(kind) has two handlers") == true, "\(String(describing: error))")
    }
  }
}
