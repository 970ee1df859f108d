import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages
import TaskCore

/// Kafka did not acknowledge what a request has sent: it may still arrive. Or it refused it.
struct Unsent: Error {
  let cause: KafkaError
  /// Whether the same request may be sent again, because its commands have the same ids then.
  let isRepeatable: Bool
  /// Writes the ids of the commands, as members of the problem.
  let members: @Sendable (inout JSONWriter) -> Void

  static let tooLarge = "it is too large for the topic of commands, alone or with what was sent beside it"

  /// Whoever does the same again without ids of its own does it twice, and what was refused is refused again. Another
  /// producer may send what one that has ended has not.
  var asksForRepetition: Bool { isRepeatable && (cause.isRetryable || cause.endsProducer || cause.code == .closed) }

  var problem: HTTPProblem {
    let how = isRepeatable ? "the same request may be sent again" : "with the ids of this answer it may be sent again"
    var problem =
      cause.isRefusal
      ? HTTPProblem(503, "Kafka refuses the commands of this server")
      : HTTPProblem(
        504, "Kafka did not confirm the commands in time, and may still have them: \(how), and nothing is done twice")
    problem.members = members
    return problem
  }
}

extension ControlAPI {
  /// Sends the one command of a request. Throws ``Unsent``, or ``HTTPError`` if it is too large for Kafka.
  func deliver(_ command: Command, isRepeatable: Bool) async throws {
    do {
      try await send([command])
    } catch let error as ReelhaulClientError {
      guard error.cause.code != .messageTooLarge else { throw HTTPError(413, Unsent.tooLarge) }
      throw Unsent(cause: error.cause, isRepeatable: isRepeatable) { $0.members(idsOf: command) }
    }
  }
}

extension JSONWriter {
  /// What is needed to send a command again as the same one.
  mutating func members(idsOf command: Command) {
    member("id", command.taskID)
    if case .control(let control) = command { member("command", control.id) }
  }
}
