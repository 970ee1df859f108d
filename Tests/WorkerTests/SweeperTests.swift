import ReelhaulSystem
import TestKit
import Testing
import WorkerCore

/// What every worker does from time to time for all of them.
@Suite struct SweeperTests {
  @Test(
    "it tidies the store, and goes on with changes of web hooks that somebody left, of which none holds up the rest",
    arguments: [false, true])
  func rareWork(failsToMoveHooks: Bool) async throws {
    let loop = EventLoop(name: "test")
    let store = TestStore()
    if failsToMoveHooks { store.refuseHookMoves() }
    let sweeper = Sweeper(
      loop: loop, store: store, interval: .milliseconds(10), tidiesWithin: .milliseconds(50), log: quietLog, onReady: {}
    )
    let work = loop.task { await sweeper.run() }
    try await eventually("both are done", within: .seconds(30)) { store.tidies > 0 && store.hookMoves > 0 }
    work.cancel()
    _ = await work.result
    await Task.detached { loop.shutdown() }.value
  }
}
