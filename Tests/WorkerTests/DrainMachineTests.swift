import Testing
import WorkerCore

@Suite struct DrainMachineTests {
  @Test("a drain goes step by step to exit 0")
  func goesStepByStep() {
    var machine = DrainMachine(limit: .seconds(25))
    #expect(machine.handle(.tick, now: at(0)) == [])
    #expect(machine.handle(.stopRequested, now: at(1000)) == [.stopIntake])
    #expect(machine.deadline == at(26_000))
    #expect(machine.handle(.intakeStopped, now: at(1001)) == [.stopRuns])
    #expect(machine.handle(.runsEnded, now: at(1100)) == [.relay(until: at(21_000))])
    #expect(machine.handle(.relayed, now: at(1150)) == [.flush(until: at(23_500))])
    #expect(machine.handle(.flushed, now: at(1200)) == [.retire])
    #expect(machine.handle(.retired, now: at(1300)) == [.exit(0)])
    #expect(machine.handle(.stopRequested, now: at(1400)) == [])
  }

  @Test("a drain that ends without a lease, with tasks left to others, exits with 1")
  func tellsThatTasksAreLeft() {
    var machine = DrainMachine(limit: .seconds(25))
    _ = machine.handle(.stopRequested, now: at(1000))
    for event in Self.steps { _ = machine.handle(event, now: at(1001)) }
    #expect(machine.handle(.abandoned, now: at(1300)) == [.exit(DrainMachine.unfinished)])
  }

  private static let steps: [DrainMachine.Event] = [.intakeStopped, .runsEnded, .relayed, .flushed]

  @Test("the time limit or a second signal ends a drain at once", arguments: 0...4)
  func theLimitAndASecondSignalCutItShort(step: Int) {
    for cut in [(DrainMachine.Event.tick, at(26_000)), (.stopRequested, at(1500))] {
      var machine = DrainMachine(limit: .seconds(25))
      _ = machine.handle(.stopRequested, now: at(1000))
      for event in Self.steps.prefix(step) { _ = machine.handle(event, now: at(1001)) }
      #expect(machine.handle(.tick, now: at(25_999)) == [])
      #expect(machine.handle(cut.0, now: cut.1) == [.exit(DrainMachine.unfinished)])
      #expect(machine.handle(.retired, now: at(26_001)) == [])
    }
  }

  @Test("a stop from within the worker does not cut a drain short")
  func aStopFromWithinCutsNothingShort() {
    var signaled = DrainMachine(limit: .seconds(25))
    _ = signaled.handle(.stopRequested, now: at(0))
    #expect(signaled.handle(.stopNeeded, now: at(1)) == [])
    #expect(signaled.handle(.stopRequested, now: at(2)) == [.exit(DrainMachine.unfinished)])

    var lost = DrainMachine(limit: .seconds(25))
    #expect(lost.handle(.stopNeeded, now: at(0)) == [.stopIntake])
    #expect(lost.handle(.stopNeeded, now: at(1)) == [])
    #expect(lost.handle(.stopRequested, now: at(2)) == [], "the first signal of a supervisor")
    #expect(lost.handle(.intakeStopped, now: at(3)) == [.stopRuns])
    #expect(lost.handle(.stopRequested, now: at(4)) == [.exit(DrainMachine.unfinished)])
  }

  @Test("steps out of order change nothing")
  func stepsOutOfTurnChangeNothing() {
    var machine = DrainMachine(limit: .seconds(25))
    #expect(machine.handle(.runsEnded, now: at(0)) == [])
    _ = machine.handle(.stopRequested, now: at(0))
    #expect(machine.handle(.flushed, now: at(1)) == [])
    #expect(machine.handle(.intakeStopped, now: at(2)) == [.stopRuns])
  }
}
