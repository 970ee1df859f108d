import ReelhaulSystem
import Testing

@Suite struct AwaitedTests {
  @Test("only the first result counts, whether somebody waits for it or not") func first() async throws {
    let awaited = Awaited<Int>()
    #expect(awaited.settle(.success(1)) && !awaited.settle(.success(2)))
    #expect(try await awaited.value == 1)
  }

  @Test("who is canceled gets no value, before and while it waits") func canceled() async {
    let (early, late) = (Awaited<Int>(), Awaited<Int>())
    for (awaited, pauses) in [(early, 0), (late, 100)] {
      let waiting = Task { try await awaited.value }
      for _ in 0..<pauses { await Task.yield() }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      #expect(!awaited.settle(.success(1)))
    }
  }

  @Test("a value and a cancellation at one moment are told to one side each", .timeLimit(.minutes(1)))
  func atOnce() async {
    for _ in 0..<5000 {
      let awaited = Awaited<Int>()
      let waiting = Task { try await awaited.value }
      async let isTaken = Task { awaited.settle(.success(1)) }.value
      waiting.cancel()
      let result = await waiting.result
      #expect(await isTaken == ((try? result.get()) == 1))
    }
  }
}
