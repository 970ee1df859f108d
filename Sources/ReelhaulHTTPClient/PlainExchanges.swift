import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Requests with short answers, over the connections of one session.
///
/// No redirect is followed: another host would get the token, and a POST would become a GET, whose answer says nothing.
final class PlainExchanges: Sendable {
  private let session: URLSession
  private let delegate = Delegate()

  init(timeout: Duration) {
    session = URLSession(configuration: .plain(timeout: timeout), delegate: delegate, delegateQueue: nil)
  }

  /// The session keeps its delegate until then.
  deinit { session.finishTasksAndInvalidate() }

  /// The answer, whatever its status. Throws the error of the session.
  func answer(to request: URLRequest) async throws -> (body: Data, response: URLResponse?) {
    let task = session.dataTask(with: request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { caller in
        delegate.begin(task.taskIdentifier, caller)
        task.resume()
      }
    } onCancel: {
      task.cancel()
    }
  }

  /// Bytes of an answer. Pages of tasks have a few megabytes at most.
  private static let limit = 64 << 20

  private typealias Caller = CheckedContinuation<(body: Data, response: URLResponse?), any Error>

  // @unchecked: the exchanges are touched only under the lock.
  private final class Delegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var exchanges: [Int: (caller: Caller, body: Data, refusal: URLResponse?)] = [:]
    /// Those that were canceled, and have ended, before they were begun.
    private var ended: Set<Int> = []

    func begin(_ task: Int, _ caller: Caller) {
      let hasEnded = lock.withLock {
        if ended.remove(task) != nil { return true }
        exchanges[task] = (caller, Data(), nil)
        return false
      }
      if hasEnded { caller.resume(throwing: URLError(.cancelled)) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      let count = lock.withLock {
        exchanges[dataTask.taskIdentifier]?.body.append(data)
        return exchanges[dataTask.taskIdentifier]?.body.count ?? 0
      }
      if count > PlainExchanges.limit { dataTask.cancel() }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      challenge.refuse(completionHandler) { refusal in
        lock.withLock { exchanges[task.taskIdentifier]?.refusal = refusal }
      }
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
      completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      let known = lock.withLock {
        let exchange = exchanges.removeValue(forKey: task.taskIdentifier)
        if exchange == nil { ended.insert(task.taskIdentifier) }
        return exchange
      }
      guard let exchange = known else { return }
      guard exchange.body.count <= PlainExchanges.limit else {
        return exchange.caller.resume(throwing: URLError(.dataLengthExceedsMaximum))
      }
      if let error, exchange.refusal == nil { return exchange.caller.resume(throwing: error) }
      exchange.caller.resume(returning: (exchange.body, exchange.refusal ?? task.response))
    }
  }
}
