import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Whether the store has the schema of this program. It is compared until it fits, as a worker does at its start: later a
/// newer program may upgrade it, and this one goes on until it is replaced.
final class Readiness: Sendable {
  private struct State {
    var hasFit = false
    var isTold = false
  }

  private let store: any ControlStore
  private let log: Logger?
  private let state = Lock(State())

  init(_ store: any ControlStore, log: Logger?) {
    self.store = store
    self.log = log
  }

  /// Throws ``StoreError`` if requests cannot be answered now. The log tells once that the schema is the reason.
  func check() async throws {
    if state.withLock({ $0.hasFit }) {
      _ = try await store.topicPrefix()
      return
    }
    do {
      try await store.checkSchema()
      state.withLock { $0.hasFit = true }
    } catch let error as StoreError where error.isAboutSchema {
      let isNew = state.withLock { state in
        defer { state.isTold = true }
        return !state.isTold
      }
      if isNew { log?.warning("the schema does not fit this program; it is not ready", ["error": .text("\(error)")]) }
      throw error
    }
  }

  /// Before a change whose result is read: with an older schema the change might succeed, and the reading fail.
  func checkBeforeChange() async throws {
    guard !state.withLock({ $0.hasFit }) else { return }
    do { try await check() } catch StoreError.otherSchema {}
  }
}
