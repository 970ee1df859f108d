/// What waits to be claimed, and among how many workers.
package struct Demand: Hashable, Sendable {
  /// No more than this many ready tasks are counted.
  package static let most = 1000

  /// Tasks that the worker can run and whose limits have room: at most ``most``.
  package var ready: Int
  /// Tasks that run in the whole fleet.
  package var running: Int
  /// Workers that can run whatever the asking one can, which is one of them. Those that drain do not count.
  package var workers: Int

  package init(ready: Int, running: Int, workers: Int) {
    self.ready = ready
    self.running = running
    self.workers = workers
  }
}
