import ReelhaulSystem

/// Reads values of many keys for many callers: what is asked for while a read is on its way goes into the next one, each
/// key once. So a store is asked with few statements, whatever the number of requests.
final class Batches<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private typealias Waiting = Awaited<Value?>

  private struct State {
    var waiting: [Key: [Waiting]] = [:]
    var isReading = false
  }

  private let most: Int
  private let read: @Sendable ([Key]) async throws -> [Key: Value]
  private let state = Lock(State())

  /// `read` gets at most `most` keys at once.
  init(most: Int = 500, read: @escaping @Sendable ([Key]) async throws -> [Key: Value]) {
    self.most = most
    self.read = read
  }

  /// What a read returns that begins after this call; nil if it returns nothing for the key.
  func value(_ key: Key) async throws -> Value? {
    let waiting = Waiting()
    let begins = state.withLock { state in
      state.waiting[key, default: []].append(waiting)
      defer { state.isReading = true }
      return !state.isReading
    }
    // Not on the server's loop, which may end before: a canceled request does not wait for it.
    if begins { Task { await readAll() } }
    return try await waiting.value
  }

  private func readAll() async {
    while let batch = next() {
      do {
        let values = try await read(Array(batch.keys))
        for (key, waiting) in batch { for one in waiting { one.settle(.success(values[key])) } }
      } catch {
        for waiting in batch.values { for one in waiting { one.settle(.failure(error)) } }
      }
    }
  }

  private func next() -> [Key: [Waiting]]? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isReading = false
        return nil
      }
      guard state.waiting.count > most else {
        defer { state.waiting = [:] }
        return state.waiting
      }
      var batch: [Key: [Waiting]] = [:]
      for (key, waiting) in state.waiting.prefix(most) { batch[key] = waiting }
      for key in batch.keys { state.waiting[key] = nil }
      return batch
    }
  }
}
