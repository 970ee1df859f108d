import ReelhaulSystem

/// The bytes that all uploads of a process hold in memory, because a checksum must be sent before them: never more than
/// the limit, whatever the number of uploads. Who comes first has them first.
///
/// The threads of all loops may call it.
final class HeldBytes: Sendable {
  private struct Waiter {
    let number: Int
    let count: Int64
    let continuation: UnsafeContinuation<Bool, Never>
  }

  private struct State {
    var held: Int64 = 0
    var waiting: [Waiter] = []
    var lastNumber = 0
    /// Waiters that were canceled before they stood in line.
    var canceled: Set<Int> = []
  }

  static let standardLimit: Int64 = 256 << 20
  private let limit: Int64
  private let state = Lock(State())

  init(limit: Int64 = standardLimit) {
    self.limit = limit
  }

  /// Runs `body` once `count` bytes may be held, which then are until it ends. More than the limit is held alone.
  /// Throws `CancellationError` if the task is canceled while it waits.
  func holding<Result>(_ count: Int64, _ body: () async throws -> Result) async throws -> Result {
    let count = min(count, limit)
    try await take(count)
    defer { giveBack(count) }
    return try await body()
  }

  private func take(_ count: Int64) async throws(CancellationError) {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let answer = state.withLock { state -> Bool? in
          if state.canceled.remove(number) != nil { return false }
          guard !state.waiting.isEmpty || state.held + count > limit else {
            state.held += count
            return true
          }
          state.waiting.append(Waiter(number: number, count: count, continuation: continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel(number)
    }
    state.withLock { _ = $0.canceled.remove(number) }
    guard isTaken else { throw CancellationError() }
  }

  private func cancel(_ number: Int) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.waiting.firstIndex(where: { $0.number == number }) else {
        state.canceled.insert(number)
        return nil
      }
      return state.waiting.remove(at: index)
    }
    waiter?.continuation.resume(returning: false)
    // Behind one that wanted much there may be others that want less.
    giveBack(0)
  }

  private func giveBack(_ count: Int64) {
    let next = state.withLock { state -> [Waiter] in
      state.held -= count
      var next: [Waiter] = []
      while let first = state.waiting.first, state.held + first.count <= limit {
        state.held += first.count
        next.append(state.waiting.removeFirst())
      }
      return next
    }
    for waiter in next { waiter.continuation.resume(returning: true) }
  }

  // MARK: For tests

  var held: Int64 { state.withLock { $0.held } }
  var waiting: Int { state.withLock { $0.waiting.count } }
}
