import Messages
import ReelhaulClient
import TaskCore

/// Turns a batch's lines into commands, or says what is wrong with them.
struct BatchDecoder {
  struct BadLine: Hashable {
    var number: Int
    var reason: String
  }

  struct Outcome {
    var commands: [Command] = []
    /// The line of each command.
    var numbers: [Int] = []
    var bad: [BadLine] = []
  }

  private var ids = UUIDMaker()

  mutating func decode(_ lines: [LineSplitter.Line]) -> Outcome {
    var outcome = Outcome()
    outcome.commands.reserveCapacity(lines.count)
    outcome.numbers.reserveCapacity(lines.count)
    for line in lines {
      do throws(Rejection) {
        outcome.commands.append(try command(line))
        outcome.numbers.append(line.number)
      } catch {
        outcome.bad.append(BadLine(number: line.number, reason: error.reason))
      }
    }
    return outcome
  }

  private mutating func command(_ line: LineSplitter.Line) throws(Rejection) -> Command {
    guard let bytes = line.bytes else {
      throw Rejection(.tooLarge, "longer than \(CommandDecoder.sizeLimit) bytes")
    }
    return try CommandDecoder.decode(line: bytes) { ids.make() }
  }
}
