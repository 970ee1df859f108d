import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerCore

/// A handler whose runs last until they are stopped or get their outcome from the test.
final class ScriptedHandler: KindHandler {
  let kind = TaskKind.download
  private struct State {
    var ledgers: [UniqueID: RunLedger] = [:]
    var endings: [UniqueID: RunOutcome] = [:]
    var waiting: [UniqueID: CheckedContinuation<RunOutcome, Never>] = [:]
    var stopped: [UniqueID: BootInstant] = [:]
    var hangs = false
    var failsToCleanUp = false
    var unansweredHost: String?
    var patience = Duration.seconds(600)
    var cleanups: [Cleanup] = []
  }
  struct Refused: Error {}
  private let state = Lock(State())

  func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    let id = claim.spec.id
    state.withLock { $0.ledgers[id] = ledger }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ending = state.withLock { state -> RunOutcome? in
          if let ending = state.endings.removeValue(forKey: id) { return ending }
          state.waiting[id] = continuation
          return nil
        }
        if let ending { continuation.resume(returning: ending) }
      }
    } onCancel: {
      if !state.withLock({ $0.hangs }) { end(id, with: .stopped) }
    }
    state.withLock { state in
      state.ledgers[id] = nil
      if outcome == .stopped { state.stopped[id] = .now }
    }
    return outcome
  }

  func cleanUp(_ cleanup: Cleanup) async throws {
    let (fails, hangs, patience) = state.withLock { state in
      state.cleanups.append(cleanup)
      let host = state.unansweredHost
      return (
        state.failsToCleanUp, host.map { cleanup.spec.destination?.contains($0) == true } ?? false, state.patience
      )
    }
    if hangs { try await Task.sleep(for: patience) }
    if fails || hangs { throw Refused() }
  }

  /// From now on clean-ups fail.
  func refuseToCleanUp() { state.withLock { $0.failsToCleanUp = true } }

  /// From now on clean-ups at this host do not end by themselves, or fail after so long.
  func answerNoCleanUps(at host: String, for patience: Duration = .seconds(600)) {
    state.withLock { ($0.unansweredHost, $0.patience) = (host, patience) }
  }

  /// Those that were begun.
  var cleanups: [Cleanup] { state.withLock { $0.cleanups } }

  func end(_ id: UniqueID, with outcome: RunOutcome) {
    let waiting = state.withLock { state in
      let waiting = state.waiting.removeValue(forKey: id)
      if waiting == nil { state.endings[id] = outcome }
      return waiting
    }
    waiting?.resume(returning: outcome)
  }

  /// From now on runs do not stop when they are canceled.
  func hang() { state.withLock { $0.hangs = true } }

  func ledger(_ id: UniqueID) -> RunLedger? { state.withLock { $0.ledgers[id] } }

  func stoppedAt(_ id: UniqueID) -> BootInstant? { state.withLock { $0.stopped[id] } }
}
