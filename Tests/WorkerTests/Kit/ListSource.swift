import ReelhaulMessages
import ReelhaulSystem
import TaskStore
import WorkerCore

/// Commands and signals that a test sends, one batch per call.
final class ListSource: CommandSource, SignalSource {
  private struct State {
    var records: [CommandRecord] = []
    var reader: CheckedContinuation<Void, Never>?
    var offset: Int64 = 0
    var committed: [Int64] = []
    var isPaused = false
    var isMember = false
    var isCanceled = false
  }

  private let state = Lock(State())

  /// Adds records as one batch, or to the last batch if it was not taken yet.
  func send(_ values: [[UInt8]], key: [UInt8]? = nil) {
    let reader = state.withLock { state in
      for value in values {
        state.records.append(
          CommandRecord(
            origin: MessageOrigin(
              topic: "reelhaul.commands", partition: 3, offset: state.offset, timestamp: 1_700_000_000_000),
            key: key, value: value, headers: [("from", Array("test".utf8))]))
        state.offset += 1
      }
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  var committed: [Int64] { state.withLock { $0.committed } }

  var isPaused: Bool { state.withLock { $0.isPaused } }

  private func take() async throws -> [CommandRecord] {
    while true {
      let records = state.withLock { state in
        defer { state.records = [] }
        return state.records
      }
      if !records.isEmpty { return records }
      try Task.checkCancellation()
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isReady = state.withLock { state in
            guard state.records.isEmpty, !state.isCanceled else { return true }
            state.reader = continuation
            return false
          }
          if isReady { continuation.resume() }
        }
      } onCancel: {
        let reader = state.withLock { state in
          state.isCanceled = true
          defer { state.reader = nil }
          return state.reader
        }
        reader?.resume()
      }
    }
  }

  func next() async throws -> CommandBatch? {
    let records = try await take()
    return CommandBatch(records: records) { [self] in
      state.withLock { $0.committed += records.map(\.origin.offset) }
    }
  }

  func next() async throws -> [Signal]? { try await take().compactMap { Signal(key: $0.key) } }

  var isMember: Bool { state.withLock { $0.isMember } }

  func join(as worker: WorkerID) { state.withLock { $0.isMember = true } }

  func leave() { state.withLock { $0.isMember = false } }

  func pause() { state.withLock { $0.isPaused = true } }

  func resume() { state.withLock { $0.isPaused = false } }
}
