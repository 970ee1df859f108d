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

  @Test(
    "a worker whose handler has a policy that cannot be followed does not start, and its error names type and value",
    .timeLimit(.minutes(1)),
    arguments: [
      (TaskPolicy(backoff: .seconds([])), "backoff has 1 to 100 values, not 0"),
      (TaskPolicy(backoff: .seconds([5, -1])), "not -1"), (TaskPolicy(backoff: .seconds([86_401])), "not 86401"),
      (TaskPolicy(backoff: .seconds(Array(repeating: 1, count: 101))), "not 101"),
      (TaskPolicy(maxAttempts: 0), "maxAttempts is 1 to 100, not 0"), (TaskPolicy(timeout: .zero), "timeout"),
      (TaskPolicy(timeout: .seconds(-1)), "timeout"),
      (TaskPolicy(timeout: .seconds(1e19)), "timeout is at most 366 days"),
      (TaskPolicy(timeout: .seconds(Int64.max)), "timeout is at most 366 days"),
      (TaskPolicy(concurrency: -1), "concurrency"),
    ])
  func policies(_ policy: TaskPolicy, _ words: String) async throws {
    let environment = ["REELHAUL_KAFKA": "127.0.0.1:1", "REELHAUL_POSTGRES": "postgres://a@127.0.0.1:1/a"]
    let error = await #expect(throws: WorkerError.self) {
      try await ReelhaulWorker.run(handlers: [Scripted(policy: policy) { _ in 1 }], environment: environment)
    }
    #expect(error?.code == 2)
    #expect(error?.message.contains("Scripted") == true && error?.message.contains(words) == true)
  }
}
