import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

@testable import WorkerCore

@Suite struct IngestMachineTests {
  private typealias Letter = IngestMachine.Letter

  @Test("a batch is applied and then committed")
  func appliesThenCommits() {
    var machine = IngestMachine(seed: 1)
    #expect(machine.start() == [.poll])
    #expect(machine.handle(.batch(commands: 3, letters: [])) == [.apply(0..<3)])
    #expect(machine.handle(.applied([.applied, .duplicate, .applied])) == [.commit, .poll])
  }

  @Test("dead letters and signals are sent before the commit")
  func lettersAndSignalsAreOutBeforeTheCommit() {
    var machine = IngestMachine(seed: 1)
    let unreadable = Letter(index: .record(1), code: "invalid_json", reason: "no")
    #expect(machine.handle(.batch(commands: 2, letters: [unreadable])) == [.apply(0..<2)])
    let refused = Letter(index: .command(0), code: "unknown_task", reason: "never heard of it")
    #expect(
      machine.handle(
        .applied([
          .refused(code: "unknown_task", reason: "never heard of it"),
          .intended(worker: UniqueID(high: 1, low: 2)),
        ])) == [.deliver(letters: [unreadable, refused], signals: [1])])
    #expect(machine.handle(.delivered) == [.commit, .poll])
  }

  @Test("a batch of unreadable records is committed too")
  func aBatchOfNothingButGarbageIsCommittedToo() {
    var machine = IngestMachine(seed: 1)
    let letter = Letter(index: .record(0), code: "invalid_json", reason: "no")
    #expect(machine.handle(.batch(commands: 0, letters: [letter])) == [.deliver(letters: [letter], signals: [])])
    #expect(machine.handle(.delivered) == [.commit, .poll])
    #expect(machine.handle(.batch(commands: 0, letters: [])) == [.commit, .poll])
  }

  @Test("ingest pauses while the store is away, and applies the batch afterwards")
  func holdsStillWhileTheStoreIsAway() {
    var machine = IngestMachine(seed: 1)
    _ = machine.handle(.batch(commands: 3, letters: []))
    let first = machine.handle(.unavailable)
    #expect(first.count == 2 && first[0] == .pause)
    #expect(machine.handle(.waited) == [.apply(0..<3)])
    let second = machine.handle(.unavailable)
    #expect(second.count == 1, "paused once")
    #expect(machine.handle(.waited) == [.apply(0..<3)])
    #expect(machine.handle(.applied([.applied, .applied, .applied])) == [.resume, .commit, .poll])
  }

  @Test("ingest pauses while dead letters cannot be written")
  func holdsStillWhileTheBrokerIsAway() {
    var machine = IngestMachine(seed: 1)
    let letter = Letter(index: .record(0), code: "invalid_json", reason: "no")
    _ = machine.handle(.batch(commands: 0, letters: [letter]))
    #expect(machine.handle(.deliveryFailed).first == .pause)
    #expect(machine.handle(.waited) == [.deliver(letters: [letter], signals: [])])
    #expect(machine.handle(.delivered) == [.resume, .commit, .poll])
  }

  /// All commands except the refused ones are applied, in order, whichever ones are refused.
  @Test("bisection finds the refused commands and applies all others in order", arguments: 0..<100 as Range<UInt64>)
  func findsThePoison(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let count = Int.random(in: 1...60, using: &random)
    let poison = Set((0..<Int.random(in: 0...3, using: &random)).map { _ in Int.random(in: 0..<count, using: &random) })
    var machine = IngestMachine(seed: seed)
    var applied: [Int] = []
    var letters: [Letter] = []
    var calls = 0
    var actions = machine.handle(.batch(commands: count, letters: []))
    loop: while let action = actions.popLast() {
      switch action {
      case .apply(let range):
        calls += 1
        if Int.random(in: 0..<8, using: &random) == 0 {
          actions = machine.handle(.unavailable)
        } else if range.contains(where: poison.contains) {
          actions = machine.handle(.refused(reason: "22P05"))
        } else {
          applied += range
          actions = machine.handle(.applied(range.map { _ in .applied }))
        }
      case .deliver(let delivered, let signals):
        #expect(signals.isEmpty)
        letters = delivered
        actions = machine.handle(.delivered)
      case .commit: break loop
      case .wait: actions = machine.handle(.waited)
      case .pause, .resume, .poll: break
      }
    }
    #expect(applied == (0..<count).filter { !poison.contains($0) })
    #expect(letters.map(\.index) == poison.sorted().map { .command($0) })
    #expect(calls <= 60 + 40 * poison.count)
  }
}
