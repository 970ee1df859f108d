import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// What is posted to a web hook.
package struct HookMessage: Sendable {
  package var url: String
  /// The same at every attempt.
  package var id: String
  package var body: [UInt8]

  package init(url: String, id: String, body: [UInt8]) {
    self.url = url
    self.id = id
    self.body = body
  }
}

/// What became of it.
package enum HookOutcome: Hashable, Sendable {
  case delivered
  /// It may succeed later; after this time at the earliest, if the receiver says so.
  case failed(String, retryAfter: Duration? = nil)
  /// The receiver wants no more of it.
  case refused(String)
}

/// Posts web hooks.
package protocol HookSending: Sendable {
  func send(_ message: HookMessage) async -> HookOutcome
}

/// Posts web hooks under the rules of transfers: the addresses that the worker permits, its certificate authorities, and
/// no redirect.
package final class HookSender: HookSending {
  private let loop: EventLoop
  private let client: CurlClient
  private let files: BlockingPool
  private let credentials: CredentialFile?
  private let secret: String?

  /// For one message, from its start to the end of the answer.
  private static let limit = Duration.seconds(15)

  /// - Parameter secret: signs what goes to hosts for which the credentials have no secret. Without it, that is not signed.
  package init(
    permits: @escaping CurlOptions.AddressPredicate, caFile: String? = nil, credentials: CredentialFile? = nil,
    secret: String? = nil
  ) {
    loop = EventLoop(name: "hooks")
    client = CurlClient(loop: loop, options: CurlOptions(permits: permits, receiveBuffer: 16 << 10, caFile: caFile))
    files = BlockingPool(name: "hooks-files", threads: 1)
    self.credentials = credentials
    self.secret = secret
  }

  package func send(_ message: HookMessage) async -> HookOutcome {
    guard let url = CurlURL(message.url) else { return .failed("the URL cannot be sent") }
    let secret: String?
    do {
      secret = try await self.secret(for: url)
    } catch {
      return .failed("the secret cannot be read: \(error)")
    }
    let time = Clocks.realtimeMicroseconds() / 1_000_000
    var headers = [
      ("Content-Type", "application/cloudevents+json; charset=utf-8"), ("webhook-id", message.id),
      ("webhook-timestamp", "\(time)"), ("Expect", ""),
    ]
    if let key = secret.flatMap(HookSignature.key) {
      headers.append(("webhook-signature", HookSignature.of(message.body, id: message.id, timestamp: time, key: key)))
    }
    var request = CurlRequest(
      .post, url: message.url, headers: headers, connectTimeout: .seconds(10), lowSpeed: nil, deadline: Self.limit)
    request.body = CurlBytes(message.body)
    let collector = CurlAnswerCollector(limit: 64 << 10)
    do throws(CurlError) {
      try await client.perform(request, handler: collector)
    } catch {
      // The status is the answer: a body that is too long, cut or late changes nothing.
      guard collector.answer != nil else { return .failed("\(error)") }
    }
    // Who decides when it is tried again knows how long that may be.
    let wish = collector.answer.flatMap {
      TaskFailure.retryAfter($0.head, now: Clocks.realtimeMicroseconds() / 1_000_000, longest: .max)
    }
    return Self.outcome(of: collector.answer?.status ?? 0, retryAfter: wish.map { .seconds($0) })
  }

  private static func outcome(of status: Int, retryAfter: Duration?) -> HookOutcome {
    switch status {
    case 200..<300: .delivered
    case 300..<400: .failed("the receiver answered \(status), and redirects are not followed")
    case 410: .refused("the receiver answered 410 Gone")
    default: .failed("the receiver answered \(status)", retryAfter: retryAfter)
    }
  }

  /// The secret of the first credential, by name, that is for the URL's host.
  private func secret(for url: CurlURL) async throws -> String? {
    guard let credentials else { return secret }
    let all = try await files.run { try credentials.credentials() }
    let own = all.sorted { $0.key < $1.key }.first { $0.value.hookSecret != nil && $0.value.isFor(url) }
    return own?.value.hookSecret ?? secret
  }

  /// Ends what still runs. Blocks until the threads have ended.
  package func close() async {
    await client.close()
    files.shutdown()
    await Task.detached { [loop] in loop.shutdown() }.value
  }
}
