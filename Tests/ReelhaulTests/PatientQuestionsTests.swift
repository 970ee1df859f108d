import ReelhaulSystem
import TaskStore
import Testing

@testable import reelhaul

@Suite struct PatientQuestionsTests {
  /// Asks one question, whose first `failures` answers are errors. Returns what was said meanwhile.
  private func ask(
    _ questions: inout PatientQuestions, failures: Int, _ error: StoreError = .unavailable("away")
  ) async throws -> [String] {
    var (said, left): ([String], Int) = ([], failures)
    do {
      try await questions.ask(
        { said.append($0) },
        {
          left -= 1
          if left >= 0 { throw error }
        })
    } catch {
      throw Failure(said: said, isUnavailable: (error as? StoreError) == .unavailable("away"))
    }
    return said
  }

  private struct Failure: Error, Equatable {
    var said: [String]
    var isUnavailable: Bool
  }

  private static let outage = "PostgreSQL does not answer; still waiting."

  @Test("each outage is told once")
  func eachOutageIsToldOnce() async throws {
    var questions = PatientQuestions { "The task continues." }
    #expect(try await ask(&questions, failures: 2) == [Self.outage])
    #expect(try await ask(&questions, failures: 0) == [])
    #expect(try await ask(&questions, failures: 1) == [Self.outage])
  }

  @Test("an outage that does not end is the error, after a sentence about what goes on")
  func aLongOutageIsTheError() async throws {
    var questions = PatientQuestions(limit: .milliseconds(300)) { "The task continues." }
    await #expect(throws: Failure(said: [Self.outage, "The task continues."], isUnavailable: true)) {
      _ = try await ask(&questions, failures: .max)
    }
  }

  @Test("the time counts from the last answer")
  func theTimeCountsFromTheLastAnswer() async throws {
    var questions = PatientQuestions(limit: .milliseconds(700)) { "The task continues." }
    for _ in 0..<4 { #expect(try await ask(&questions, failures: 1) == [Self.outage]) }
  }

  @Test("another error ends it at once, after the same sentence")
  func anotherErrorEndsIt() async throws {
    var questions = PatientQuestions { "The task continues." }
    await #expect(throws: Failure(said: ["The task continues."], isUnavailable: false)) {
      _ = try await ask(&questions, failures: 1, .failed("a bug"))
    }
  }
}
