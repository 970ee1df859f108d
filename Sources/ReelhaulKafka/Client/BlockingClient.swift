import ReelhaulSystem

/// A client for blocking calls. Its own thread makes the calls one after the other, and frees the client after the
/// last one.
final class BlockingClient: Sendable {
  let handle: KafkaHandle
  private let name: String
  private let pool: BlockingPool
  private let isClosed = Flag()

  /// `name`: the name of the threads.
  init(_ handle: KafkaHandle, name: String) {
    self.handle = handle
    self.name = name
    pool = BlockingPool(name: name, threads: 1)
  }

  deinit {
    _ = end()
  }

  func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws(KafkaError) -> Result
  ) async throws(KafkaError) -> Result {
    do {
      return try await pool.run { try body() }
    } catch let error as KafkaError {
      throw error
    } catch {
      throw .closed("the client \(name)")
    }
  }

  /// The same, again and again while partitions move, as those of a new topic do. The error names what keeps the
  /// cluster from answering.
  func run<Result: Sendable>(
    retryingFor milliseconds: Int32, _ body: @escaping @Sendable () throws(KafkaError) -> Result
  ) async throws(KafkaError) -> Result {
    try await run { [handle] () throws(KafkaError) in
      let deadline = BootInstant.now + .milliseconds(milliseconds)
      do throws(KafkaError) {
        let result = try handle.retrying(until: deadline) { () throws(KafkaError) in
          defer { handle.drain() }
          return try body()
        }
        handle.recovered()
        return result
      } catch {
        throw error.because(of: handle.trouble)
      }
    }
  }

  func close() async {
    await end()?.ended()
  }

  /// Frees the client once no call is running; nil if this has already begun.
  private func end() -> PollThread? {
    guard !isClosed.testAndSet() else { return nil }
    return PollThread(name: "\(name)-end") { [handle, pool] in
      pool.shutdown()
      handle.destroy()
    }
  }
}
