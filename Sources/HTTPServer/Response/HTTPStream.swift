import ReelhaulSystem

/// The open end of an answer whose body is written as it comes. Use it on the server's loop.
// @unchecked: touched only on the loop's thread.
package final class HTTPStream: @unchecked Sendable {
  private let stream: LoopStream
  private let serverHasRoom: (Int) -> Bool
  private let gone: () -> Void
  private let waiting: (Bool) -> Void
  /// Writes that are not finished, and who waits for their end.
  private var unsent = 0
  private var waiter: CheckedContinuation<Void, Never>?

  /// More than this waits for no client.
  package static let most = 64 << 10

  /// `waiting` is told when an answer begins to wait for its client, and when this is over.
  init(
    _ stream: LoopStream, hasRoom: @escaping (Int) -> Bool, gone: @escaping () -> Void,
    waiting: @escaping (Bool) -> Void
  ) {
    self.stream = stream
    serverHasRoom = hasRoom
    self.gone = gone
    self.waiting = waiting
  }

  /// How many bytes wait for the client.
  package var pending: Int { stream.pending }

  /// Whether so many bytes can be sent now. More than ``most`` go alone, and only if what other clients have not read
  /// leaves room.
  package func hasRoom(for bytes: Int) -> Bool {
    stream.pending + bytes <= Self.most || stream.pending == 0 && serverHasRoom(bytes)
  }

  /// Sends the bytes. Returns false if the client has gone, or reads so slowly that it is dropped. One that reads nothing
  /// is dropped after the time that the server gives the reader of an answer.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    guard !stream.isClosed else { return false }
    guard hasRoom(for: bytes.count) else {
      gone()
      return false
    }
    if unsent == 0 { waiting(true) }
    unsent += 1
    stream.write(bytes) { [self] in
      unsent -= 1
      guard unsent == 0 else { return }
      waiting(false)
      waiter?.resume()
      waiter = nil
    }
    return true
  }

  /// Waits until everything is sent; false if the client has gone. Only one task may wait.
  package func flush() async -> Bool {
    if unsent > 0, !stream.isClosed {
      await withCheckedContinuation { if unsent == 0 { $0.resume() } else { waiter = $0 } }
    }
    return !stream.isClosed
  }
}
