import ReelhaulSystem

/// The open end of an answer whose body is written as it comes. Use it on the server's loop.
// @unchecked: touched only on the loop's thread.
package final class HTTPStream: @unchecked Sendable {
  private let stream: LoopStream
  private let gone: () -> Void

  /// More than this waits for no client.
  package static let most = 64 << 10

  init(_ stream: LoopStream, gone: @escaping () -> Void) {
    self.stream = stream
    self.gone = gone
  }

  /// How many bytes wait for the client.
  package var pending: Int { stream.pending }

  /// Sends the bytes. Returns false if the client has gone, or reads so slowly that it is dropped.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    guard !stream.isClosed else { return false }
    guard stream.pending + bytes.count <= Self.most || stream.pending == 0 else {
      gone()
      return false
    }
    stream.write(bytes)
    return true
  }
}
