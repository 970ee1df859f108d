import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request whose answer comes in pieces.
// @unchecked: URLSession calls its delegate on one serial queue, and only there are the properties used.
final class StreamingExchange: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  /// What a reader that does not keep up may leave in memory. After that the exchange fails, and the reader begins anew
  /// behind the last event that it had.
  private static let limit = 8 << 20

  private let pieces: AsyncThrowingStream<Data, any Error>.Continuation
  private let unread: UnreadBytes
  private var refusal: (response: HTTPURLResponse, body: Data)?

  static func pieces(of request: URLRequest, timeout: Duration) -> Pieces {
    let unread = UnreadBytes()
    let stream = AsyncThrowingStream<Data, any Error> { continuation in
      let settings = URLSessionConfiguration.plain(timeout: timeout)
      settings.timeoutIntervalForResource = 7 * 24 * 3600
      let exchange = StreamingExchange(continuation, unread)
      let session = URLSession(configuration: settings, delegate: exchange, delegateQueue: nil)
      // Ends the session too, which otherwise keeps its delegate for ever.
      continuation.onTermination = { _ in session.invalidateAndCancel() }
      session.dataTask(with: request).resume()
    }
    return Pieces(stream: stream, unread: unread)
  }

  /// The pieces of a body. Throws ``FleetError``.
  struct Pieces: AsyncSequence {
    fileprivate let stream: AsyncThrowingStream<Data, any Error>
    fileprivate let unread: UnreadBytes

    struct AsyncIterator: AsyncIteratorProtocol {
      fileprivate var pieces: AsyncThrowingStream<Data, any Error>.Iterator
      fileprivate let unread: UnreadBytes

      mutating func next() async throws -> Data? {
        let piece = try await pieces.next()
        unread.take(piece?.count ?? 0)
        return piece
      }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: stream.makeAsyncIterator(), unread: unread) }
  }

  private init(_ pieces: AsyncThrowingStream<Data, any Error>.Continuation, _ unread: UnreadBytes) {
    self.pieces = pieces
    self.unread = unread
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse, response.statusCode != 200 {
      refusal = (response, Data())
    } else if response.mimeType?.lowercased() != "text/event-stream" {
      // At once, because a page may have no end.
      let type = response.mimeType ?? "something without a type"
      pieces.finish(throwing: FleetError(.unreadableAnswer, "the answer is no stream of events, but \(type)"))
    }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if refusal != nil {
      if let size = refusal?.body.count, size < 64 << 10 { refusal?.body.append(data) }
      return
    }
    guard unread.add(data.count) <= Self.limit else {
      return pieces.finish(throwing: FleetError(.unreachable, "events came faster than they were read"))
    }
    pieces.yield(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    challenge.refuse(completionHandler) { refusal in
      if self.refusal == nil { self.refusal = (refusal, Data()) }
    }
  }

  /// None is followed: see ``PlainExchanges``.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    refusal = (response, Data())
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if let refusal {
      pieces.finish(throwing: FleetError(response: refusal.response, body: refusal.body))
    } else if let error {
      pieces.finish(throwing: FleetError(connection: error))
    } else {
      pieces.finish()
    }
  }
}

/// How many bytes have come that the reader has not taken.
// @unchecked: the count is touched only under the lock.
final class UnreadBytes: @unchecked Sendable {
  private let lock = NSLock()
  private var count = 0

  func add(_ bytes: Int) -> Int {
    lock.withLock {
      count += bytes
      return count
    }
  }

  func take(_ bytes: Int) { lock.withLock { count -= bytes } }
}
