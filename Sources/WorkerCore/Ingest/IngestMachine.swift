import ReelhaulSystem
import TaskStore

/// Processes one batch of commands after another: apply the commands, write dead letters for those that cannot be
/// applied, send signals for intents, and commit the offset. It pauses while the store or the broker cannot be
/// reached.
///
/// It works on indices: `commands` are the readable records of the batch, in order.
package struct IngestMachine: Sendable {
  package enum Event: Sendable {
    /// Records arrived: `commands` readable ones, and letters for the others.
    case batch(commands: Int, letters: [Letter])
    case applied([CommandOutcome])
    /// The store cannot be reached, or it is unknown whether it applied the commands. Repeating them is harmless.
    case unavailable
    /// The store refused all commands of this call, because at least one of them is poison.
    case refused(reason: String)
    /// Dead letters are acknowledged, and signals are being sent.
    case delivered
    case deliveryFailed
    /// The wait is over.
    case waited
  }

  package enum Action: Hashable, Sendable {
    case poll
    case apply(Range<Int>)
    case deliver(letters: [Letter], signals: [Int])
    /// Commit the offsets. No answer is needed: a later commit covers a failed one, and a repeated batch changes
    /// nothing.
    case commit
    /// Stop fetching but keep polling, so that the group does not take the worker for dead.
    case pause
    case resume
    case wait(Duration)
  }

  /// A rejected record. `index` counts commands, or records if the record could not be read.
  package struct Letter: Hashable, Sendable {
    package enum Index: Hashable, Sendable {
      case record(Int)
      case command(Int)
    }
    package var index: Index
    package var code: String
    package var reason: String

    package init(index: Index, code: String, reason: String) {
      self.index = index
      self.code = code
      self.reason = reason
    }
  }

  private enum State {
    /// Can transition to: applying, delivering.
    case polling
    /// Can transition to: applying, delivering, polling.
    case applying(Work)
    /// Can transition to: polling.
    case delivering(Work)
  }

  private struct Work {
    var commands: Bisection
    var letters: [Letter]
    var signals: [Int] = []

    mutating func note(_ outcomes: [CommandOutcome], of range: Range<Int>) {
      for (index, outcome) in zip(range, outcomes) {
        switch outcome {
        case .applied, .duplicate: break
        case .intended: signals.append(index)
        case .refused(let code, let reason):
          letters.append(Letter(index: .command(index), code: code, reason: reason))
        }
      }
    }
  }

  private var state = State.polling
  private var isPaused = false
  private var backoff: Backoff

  package init(seed: UInt64) {
    backoff = Backoff(base: .milliseconds(50), limit: .seconds(5), seed: seed)
  }

  package func start() -> [Action] { [.poll] }

  package mutating func handle(_ event: Event) -> [Action] {
    switch (state, event) {
    case (.polling, .batch(let commands, let letters)):
      return proceed(Work(commands: Bisection(count: commands), letters: letters))
    case (.applying(var work), .applied(let outcomes)):
      if let range = work.commands.current { work.note(outcomes, of: range) }
      work.commands.accept()
      return moving() + proceed(work)
    case (.applying(var work), .refused(let reason)):
      if let index = work.commands.refuse() {
        work.letters.append(Letter(index: .command(index), code: "refused_by_store", reason: reason))
      }
      return proceed(work)
    case (.applying, .unavailable), (.delivering, .deliveryFailed):
      return holdStill()
    case (.applying(let work), .waited), (.delivering(let work), .waited):
      return proceed(work)
    case (.delivering, .delivered):
      return moving() + finish()
    case (.polling, _), (.applying, _), (.delivering, _):
      return []
    }
  }

  private mutating func proceed(_ work: Work) -> [Action] {
    if let range = work.commands.current {
      state = .applying(work)
      return [.apply(range)]
    }
    guard work.letters.isEmpty, work.signals.isEmpty else {
      state = .delivering(work)
      return [.deliver(letters: work.letters, signals: work.signals)]
    }
    return finish()
  }

  private mutating func finish() -> [Action] {
    state = .polling
    return [.commit, .poll]
  }

  private mutating func holdStill() -> [Action] {
    defer { isPaused = true }
    return (isPaused ? [] : [.pause]) + [.wait(backoff.next())]
  }

  private mutating func moving() -> [Action] {
    backoff.reset()
    defer { isPaused = false }
    return isPaused ? [.resume] : []
  }
}
