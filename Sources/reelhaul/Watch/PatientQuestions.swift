import ReelhaulSystem
import TaskStore

/// The questions of a command that waits. It outlasts an outage of PostgreSQL, because what it waits for goes on.
struct PatientQuestions {
  private static let interval: Duration = .milliseconds(250)

  private let limit: Duration
  private let sentence: @Sendable () -> String?
  private var answered = BootInstant.now
  private var isTold = false

  /// `sentence` is about what goes on without the command, if it gives up: after this limit since the last answer.
  init(limit: Duration = .seconds(60), _ sentence: @escaping @Sendable () -> String? = { nil }) {
    self.limit = limit
    self.sentence = sentence
  }

  /// Asks again while PostgreSQL does not answer. `say` is told once in an outage, and what goes on without the command
  /// if it gives up.
  mutating func ask<Answer>(
    _ say: (String) -> Void, _ question: () async throws -> Answer
  ) async throws -> Answer {
    while true {
      do {
        let answer = try await question()
        (answered, isTold) = (.now, false)
        return answer
      } catch let error as StoreError {
        // The store also calls it an outage if the question was canceled.
        guard !Task.isCancelled else { throw error }
        guard case .unavailable = error, BootInstant.now - answered < limit else {
          if let sentence = sentence() { say(sentence) }
          throw error
        }
        if !isTold { say("PostgreSQL does not answer; still waiting.") }
        isTold = true
        try await Task.sleep(for: Self.interval)
      }
    }
  }
}
