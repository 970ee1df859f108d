import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// What requests of one storage root share: its loop, connections and limits.
struct HTTPLane: Sendable {
  /// Of the root, for ``HostConnections``.
  let name: String
  let loop: EventLoop
  let client: CurlClient
  let hosts: HostConnections
  let held: HeldBytes
  let limiter: RateLimiter?
  let metrics: TransferMetrics

  /// Takes a connection to `server` (host:port), and gives it back after `body`. Calls `pulse` now and then while it
  /// waits for one. Throws ``CurlError/canceled`` if the task is canceled meanwhile.
  func connected<Result>(
    to server: String, pulse: @escaping @Sendable () -> Void, _ body: () async throws(CurlError) -> Result
  ) async throws(CurlError) -> Result {
    if !hosts.take(server, for: name) {
      let waiting = loop.repeating(every: .seconds(10), pulse)
      defer { waiting.cancel() }
      do {
        try await hosts.wait(for: server, for: name)
      } catch {
        throw .canceled
      }
    }
    defer { hosts.giveBack(server, for: name) }
    return try await body()
  }

  /// Sends `request`, and returns the answer with its body, of which `limit` bytes are kept.
  ///
  /// An answer that refuses the request counts although the connection broke after it: the server has not read the
  /// rest of the body.
  func call(
    _ request: CurlRequest, limit: Int = 1 << 20, pulse: @escaping @Sendable () -> Void = {}
  ) async throws(CurlError) -> HTTPAnswer {
    let answer = try await callOnce(request, limit: limit, pulse: pulse)
    guard answer.status == 417, let body = request.body, body.rewind() else { return answer }
    // A server that knows no 100-continue.
    var request = request
    request.headers.append(("Expect", ""))
    return try await callOnce(request, limit: limit, pulse: pulse)
  }

  private func callOnce(
    _ request: CurlRequest, limit: Int, pulse: @escaping @Sendable () -> Void
  ) async throws(CurlError) -> HTTPAnswer {
    guard let url = CurlURL(request.url) else { throw CurlError(.badRequest, message: "the URL cannot be sent") }
    return try await connected(to: url.server, pulse: pulse) { () async throws(CurlError) in
      let collector = AnswerCollector(limit: limit)
      do throws(CurlError) {
        _ = try await client.perform(request, handler: collector)
      } catch {
        guard let answer = collector.isFull ? collector.answer : collector.refusal, error.code != .canceled else {
          throw error
        }
        return answer
      }
      guard let answer = collector.answer else { throw CurlError(.noResponse, message: "there was no answer") }
      return answer
    }
  }
}

extension HTTPLane {
  /// Like ``call(_:limit:pulse:)``, and throws ``TaskFailure``.
  func answer(
    _ request: CurlRequest, limit: Int = 1 << 20, pulse: @escaping @Sendable () -> Void
  ) async throws -> HTTPAnswer {
    do throws(CurlError) {
      return try await call(request, limit: limit, pulse: pulse)
    } catch {
      throw TaskFailure(error, url: request.url)
    }
  }
}

extension TaskFailure {
  /// The failure for an answer that refuses what was to be stored.
  init(refusing answer: HTTPAnswer, url: String) {
    self = .status(answer.status, head: answer.head, url: url, now: Clocks.realtimeMicroseconds() / 1_000_000)
    switch answer.status {
    case 401, 403: self.class = .fail
    case 423, 507: self.class = .wait
    default: break
    }
  }
}

extension StorageRoot {
  var lane: HTTPLane {
    HTTPLane(name: name, loop: loop, client: client, hosts: hosts, held: held, limiter: limiter, metrics: metrics)
  }
}

/// An answer with a short body.
struct HTTPAnswer: Sendable {
  var head: CurlHead
  var body: [UInt8]

  var status: Int { head.status }
  var isSuccess: Bool { (200..<300).contains(head.status) }
}

/// Keeps an answer in memory.
// @unchecked: used only on the client's loop, and after its end by the caller.
private final class AnswerCollector: CurlHandler, @unchecked Sendable {
  private let limit: Int
  private(set) var answer: HTTPAnswer?
  /// Whether there is more than is kept. The status says already what became of the request.
  private(set) var isFull = false

  init(limit: Int) {
    self.limit = limit
  }

  /// The answer, if it is one that ends a request before its body is sent.
  var refusal: HTTPAnswer? { answer.flatMap { $0.status >= 300 ? $0 : nil } }

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    answer = HTTPAnswer(head: head, body: [])
    return .continue
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    let room = limit - (answer?.body.count ?? limit)
    answer?.body.append(contentsOf: body.prefix(room))
    isFull = body.count > room
    return isFull ? .abort : .continue
  }
}
