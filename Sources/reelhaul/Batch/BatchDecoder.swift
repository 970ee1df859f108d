import ReelhaulClient
import ReelhaulCodec
import ReelhaulMessages
import TaskCore

/// Turns the lines of a batch into commands, or says why they are wrong.
struct BatchDecoder {
  struct Note: Hashable {
    var number: Int
    var reason: String
  }

  struct Outcome {
    var commands: [Command] = []
    /// The line number of each command.
    var numbers: [Int] = []
    var bad: [Note] = []
    /// Remarks about correct lines.
    var notes: [Note] = []
  }

  private var ids = UniqueIDMaker()
  private var knownKinds = Set(TaskKind.standard)

  mutating func decode(_ lines: [LineSplitter.Line]) -> Outcome {
    var outcome = Outcome()
    outcome.commands.reserveCapacity(lines.count)
    outcome.numbers.reserveCapacity(lines.count)
    for line in lines {
      do throws(Rejection) {
        let command = try command(line)
        outcome.commands.append(command)
        outcome.numbers.append(line.number)
        if case .submit(let spec) = command, knownKinds.insert(spec.kind).inserted {
          outcome.notes.append(Note(number: line.number, reason: Self.unusual(spec.kind)))
        }
      } catch {
        outcome.bad.append(Note(number: line.number, reason: error.reason))
      }
    }
    return outcome
  }

  /// The remark about a kind that is not built in: it may have its own handler, or be a mistake.
  private static func unusual(_ kind: TaskKind) -> String {
    let near = Suggestion.nearest(to: kind.rawValue, in: TaskKind.standard.map(\.rawValue))
    return "kind \"\(kind.rawValue)\" is not built in: its tasks wait for a worker with a handler for this kind"
      + (near.map { "; did you mean \"\($0)\"?" } ?? "")
  }

  private mutating func command(_ line: LineSplitter.Line) throws(Rejection) -> Command {
    guard let bytes = line.bytes else {
      throw Rejection(.tooLarge, "longer than \(CommandDecoder.sizeLimit) bytes")
    }
    return try CommandDecoder.decode(line: bytes) { ids.make() }.withOrigin
  }
}
