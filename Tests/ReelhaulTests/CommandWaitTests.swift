import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

@Suite struct CommandWaitTests {
  /// Answers the first questions with nothing, and later ones with `outcomes`. `stops` is how often tasks still stop.
  private final class Script: DetailReader {
    private let left: Lock<(silent: Int, stops: Int)>
    private let outcomes: [UniqueID: AppliedCommand]

    init(_ outcomes: [UniqueID: AppliedCommand], silent: Int = 2, stops: Int = 0) {
      self.outcomes = outcomes
      left = Lock((silent, stops))
    }

    var isDone: Bool { left.withLock { $0 == (0, 0) } }

    func checkpoints(of tasks: [UniqueID]) async throws -> [UniqueID: Checkpoint] { [:] }

    func outcomes(of commands: [UniqueID]) async throws -> [UniqueID: AppliedCommand] {
      let isSilent = left.withLock { left in
        defer { left.silent = max(0, left.silent - 1) }
        return left.silent > 0
      }
      return isSilent ? [:] : outcomes.filter { commands.contains($0.key) }
    }

    func stopping(_ tasks: [UniqueID]) async throws -> [UniqueID] {
      guard !tasks.isEmpty else { return [] }
      return left.withLock { left in
        defer { left.stops = max(0, left.stops - 1) }
        return left.stops > 0 ? tasks : []
      }
    }
  }

  private static let commands = (1...2).map { number in
    Command.Control(
      id: UniqueID(high: 1, low: number), taskID: UniqueID(high: 2, low: number), action: .prioritize(7))
  }

  private func wait(for script: Script) async throws {
    let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(["list"])
    guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
    try await CommandWait(script, Context(arguments, environment: [:])).carriedOut(Self.commands.map(Command.control))
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
}
