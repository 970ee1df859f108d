import TaskCore
import Testing

@testable import reelhaul

@Suite struct BatchDecoderTests {
  private let lines = [
    #"{"source":"https://a.example/film.mp4"}"#,
    #"{"source":"ftp://a.example/film.mp4"}"#,
    #"{"command":"pause","taskId":"01990000-0000-7000-8000-000000000001"}"#,
    "nonsense",
  ].enumerated().map { LineSplitter.Line(number: $0 + 1, bytes: Array($1.utf8)) }

  @Test func takesTheGoodAndNamesTheBad() throws {
    let outcome = BatchDecoder(isStrict: false).decode(lines + [.init(number: 5, bytes: nil)])
    #expect(outcome.commands.count == 2)
    #expect(outcome.bad.map(\.number) == [2, 4, 5])
    #expect(outcome.bad[0].reason.contains("source: "))
    guard case .submit(let spec) = outcome.commands[0] else {
      Issue.record("the first line is a task")
      return
    }
    #expect(spec.destination == "storage://default/film.mp4")
  }

  @Test func strictnessEndsAtTheFirstBadLine() {
    let outcome = BatchDecoder(isStrict: true).decode(lines)
    #expect(outcome.commands.count == 1)
    #expect(outcome.bad.map(\.number) == [2])
  }
}
