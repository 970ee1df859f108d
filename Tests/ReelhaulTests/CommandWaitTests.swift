import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

@Suite struct CommandWaitTests {
  /// Answers the first questions with nothing, and later ones with `outcomes`. `stops` is how often tasks still stop.
  /// `isAway` tells which questions get no answer, counted from 1.
  private final class Script: DetailReader {
    private let left: Lock<(silent: Int, stops: Int, asked: Int)>
    private let outcomes: [UniqueID: AppliedCommand]
    private let isAway: @Sendable (Int) -> Bool

    init(
      _ outcomes: [UniqueID: AppliedCommand], silent: Int = 2, stops: Int = 0,
      isAway: @escaping @Sendable (Int) -> Bool = { _ in false }
    ) {
      self.outcomes = outcomes
      self.isAway = isAway
      left = Lock((silent, stops, 0))
    }

    var isDone: Bool { left.withLock { $0.silent == 0 && $0.stops == 0 } }

    private func count() throws {
      let number = left.withLock { left in
        left.asked += 1
        return left.asked
      }
      if isAway(number) { throw StoreError.unavailable("away") }
    }

    func outcomes(of commands: [UniqueID]) async throws -> [UniqueID: AppliedCommand] {
      try count()
      let isSilent = left.withLock { left in
        defer { left.silent = max(0, left.silent - 1) }
        return left.silent > 0
      }
      return isSilent ? [:] : outcomes.filter { commands.contains($0.key) }
    }

    func stopping(_ tasks: [UniqueID]) async throws -> [UniqueID: ControlAction] {
      try count()
      guard !tasks.isEmpty else { return [:] }
      return left.withLock { left in
        defer { left.stops = max(0, left.stops - 1) }
        return left.stops > 0 ? Dictionary(uniqueKeysWithValues: tasks.map { ($0, .pause) }) : [:]
      }
    }
  }

  private static let commands = (1...2).map { number in
    Command.Control(
      id: UniqueID(high: 1, low: number), taskID: UniqueID(high: 2, low: number), action: .prioritize(7))
  }

  private func wait(for script: Script, _ questions: PatientQuestions = PatientQuestions()) async throws {
    let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(["list"])
    guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
    try await CommandWait(script, Context(arguments, environment: [:]))
      .carriedOut(Self.commands.map(Command.control), questions)
  }

  @Test("--wait ends once every command is applied and every task has stopped")
  func itEndsWithTheEffect() async throws {
    let script = Script([Self.commands[0].id: .applied, Self.commands[1].id: .applied], stops: 2)
    try await wait(for: script)
    #expect(script.isDone)
  }

  /// The task was canceled, or claimed, after the command was sent.
  @Test(
    "a command that a worker refuses ends --wait with its reason", arguments: ["illegal_transition", "unknown_task"])
  func aRefusalIsTold(_ code: String) async throws {
    let refusal = AppliedCommand.refused(code: code, reason: "it is too late")
    let script = Script([Self.commands[0].id: .applied, Self.commands[1].id: refusal], stops: 1)
    let failure = await #expect(throws: CommandFailure.self) { try await wait(for: script) }
    #expect(failure?.code == (code == "unknown_task" ? .notFound : .refused))
    #expect(failure?.message.hasSuffix("it is too late") == true)
    #expect(script.isDone, "the other command is waited for")
  }

  @Test("--wait goes on after an outage of PostgreSQL", arguments: [1...1, 2...2, 4...6])
  func anOutageIsOutlasted(_ outage: ClosedRange<Int>) async throws {
    let applied = [Self.commands[0].id: AppliedCommand.applied, Self.commands[1].id: .applied]
    let script = Script(applied, stops: 1, isAway: { outage.contains($0) })
    try await wait(for: script)
    #expect(script.isDone)
  }

  @Test("--wait ends with the error of an outage that does not end")
  func aLongOutageEndsIt() async throws {
    await #expect(throws: StoreError.unavailable("away")) {
      try await wait(for: Script([:], isAway: { $0 > 1 }), PatientQuestions(limit: .milliseconds(600)))
    }
  }
}
