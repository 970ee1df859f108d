import TaskCore
import Testing

@testable import reelhaul

@Suite struct WatchEndTests {
  private static let tasks = (1...4).map { UniqueID(high: 0, low: $0) }

  @Test(
    "after Ctrl-C a sentence says which tasks continue",
    arguments: [
      (1, 0, "The task continues: 'reelhaul watch \(tasks[0])' follows, 'reelhaul cancel \(tasks[0])' stops."),
      (1, 1, "The task does not change: "),
      (2, 0, "The tasks continue: 'reelhaul watch \(tasks[0]) \(tasks[1])' follows"),
      (2, 1, "The tasks continue, except 1 of them: "),
      (2, 2, "The tasks do not change: "),
      (4, 0, "The tasks continue: 'reelhaul watch \(tasks[0]) \(tasks[1]) \(tasks[2]) …' follows"),
    ])
  func aSentenceSaysWhichTasksContinue(_ count: Int, _ held: Int, _ start: String) {
    let sentence = WatchEnd.sentence(
      Array(Self.tasks.prefix(count)), held: Set(Self.tasks.prefix(held)), awaited: .end)
    #expect(sentence.hasPrefix(start), "\(sentence)")
  }

  @Test("after Ctrl-C a sentence says that the command was sent")
  func aCommandWasSent() {
    let sentence = WatchEnd.sentence([Self.tasks[0]], held: [], awaited: .effect)
    #expect(sentence.hasPrefix("The command was sent: "))
  }
}
