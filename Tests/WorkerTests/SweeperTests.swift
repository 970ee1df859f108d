import ReelhaulSystem
import TestKit
import Testing
import WorkerCore

/// What every worker does from time to time for all of them.
@Suite struct SweeperTests {
  @Test("all workers together do what any may do as often as a few, and none is silent for long") func share() {
    let fleet = FleetSize()
    func pause() -> Duration { fleet.pause(.seconds(1), of: 4, atMost: .seconds(4)) }
    #expect(pause() == .seconds(1))
    fleet.found(4)
    #expect(pause() == .seconds(1))
    fleet.found(10)
    #expect(pause() == .milliseconds(2_500))
    fleet.found(300)
    #expect(pause() == .seconds(4))
    #expect(fleet.pause(.seconds(9), of: 4, atMost: .seconds(4)) == .seconds(9))
    fleet.found(0)
    #expect(fleet.workers == 1)
  }

  @Test(
    "it tidies the store, and goes on with changes of web hooks that somebody left, of which none holds up the rest",
    arguments: [false, true])
  func rareWork(fails: Bool) async throws {
    let loop = EventLoop(name: "test")
    let store = TestStore()
    if fails { store.refuseSteps() }
    let sweeper = Sweeper(
      loop: loop, store: store, interval: .milliseconds(500), fleet: FleetSize(), tidyPause: .milliseconds(50),
      log: quietLog, onReady: {})
    let work = loop.task { await sweeper.run() }
    try await eventually("all is done", within: .seconds(30)) {
      store.rests > (fails ? 1 : 0) && store.tidies > 0 && store.stallChecks > 0 && store.hookMoves > 0
    }
    work.cancel()
    _ = await work.result
    await Task.detached { loop.shutdown() }.value
  }

  @Test("a sweep that fails may wait for a batch that nobody goes on sending, and lets such be looked for")
  func failedSweeps() async throws {
    let loop = EventLoop(name: "test")
    let store = TestStore()
    store.setAway(true)
    // By its turn alone, one in some hours.
    let sweeper = Sweeper(
      loop: loop, store: store, interval: .milliseconds(20), fleet: FleetSize(), tidyPause: .seconds(1_000_000),
      log: quietLog, onReady: {})
    let work = loop.task { await sweeper.run() }
    try await eventually("it is looked for", within: .seconds(30)) { store.stallChecks > 2 }
    work.cancel()
    _ = await work.result
    await Task.detached { loop.shutdown() }.value
  }
}
