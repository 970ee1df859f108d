import ReelhaulSystem
import ReelhaulTelemetry

/// Listens to the hints of the `signals` topic. For tasks that run here it fetches the intents at once, instead of
/// with the next renewal.
package actor SignalListener {
  private let loop: EventLoop
  private let source: any SignalSource
  private let runner: Runner
  private let keeper: LeaseKeeper
  private let log: Logger

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, source: any SignalSource, runner: Runner, keeper: LeaseKeeper, log: Logger) {
    self.loop = loop
    self.source = source
    self.runner = runner
    self.keeper = keeper
    self.log = log
  }

  /// Runs until its task is canceled or the source is closed.
  package func run() async {
    do {
      while !Task.isCancelled, let signals = try await source.next() {
        for signal in signals where await runner.isRunning(signal.taskID) {
          await keeper.renewNow()
          break
        }
      }
    } catch {
      guard !Task.isCancelled else { return }
      log.error("signals can no longer be read: intents wait for renewals", ["error": .text("\(error)")])
    }
  }
}
