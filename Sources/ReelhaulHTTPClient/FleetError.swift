import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Why a call to a fleet failed.
public struct FleetError: Error, Sendable, CustomStringConvertible {
  /// An open set of codes: those that this client knows, and whatever a newer server sends.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }

    /// The server cannot be reached, or the connection was lost before it had answered.
    public static let unreachable = Code(rawValue: "unreachable")
    /// The server did not answer in time.
    public static let timedOut = Code(rawValue: "timed_out")
    /// The answer is not one of this API: another server may be at this address.
    public static let unreadableAnswer = Code(rawValue: "unreadable_answer")
    /// No token, or one that is wrong, revoked or over.
    public static let unauthorized = Code(rawValue: "unauthorized")
    /// The token does not allow it.
    public static let forbidden = Code(rawValue: "forbidden")
    public static let notFound = Code(rawValue: "not_found")
    /// The task's state does not allow the command.
    public static let refused = Code(rawValue: "refused")
    /// The command was sent, and no worker has applied it in time. It may still be applied, so do not send it again.
    public static let notApplied = Code(rawValue: "not_applied")
    /// The task or the request is not valid, as this client sees for itself. A server names what is wrong: `missing_field`,
    /// `invalid_field` and the like (docs/operations.md).
    public static let invalidTask = Code(rawValue: "invalid_task")
    public static let tooManyRequests = Code(rawValue: "too_many_requests")
    /// PostgreSQL or Kafka cannot be reached by the server.
    public static let unavailable = Code(rawValue: "unavailable")
    /// Events between the last one and the next were lost to this client, because the fleet no longer has them.
    public static let eventsLost = Code(rawValue: "events_lost")
  }

  public var code: Code
  /// For people, in English.
  public var message: String
  /// The status of the answer; nil if there was none.
  public var status: Int?
  /// Names the request in the server's log.
  public var requestID: String?
  /// How long the server asks to wait before another attempt.
  public var retryAfter: Duration?
  /// The body of the answer.
  var body: Data?

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Whether the same request may succeed later.
  public var isRetryable: Bool {
    switch code {
    case .unreachable, .timedOut, .tooManyRequests, .unavailable: true
    // The server, or a proxy, has given up waiting for the request, or has not looked at it.
    default: status.map { $0 == 408 || $0 == 425 || $0 >= 500 && $0 != 501 } ?? false
    }
  }

  public var description: String { status.map { "\(message) (\(code), status \($0))" } ?? "\(message) (\(code))" }
}

extension FleetError {
  init(connection error: any Error) {
    let code: Code =
      switch (error as? URLError)?.code {
      case .timedOut: .timedOut
      // Another attempt would come to the same.
      case .dataLengthExceedsMaximum, .unsupportedURL, .badURL: .unreadableAnswer
      default: .unreachable
      }
    self.init(code, error.localizedDescription)
  }

  /// The problem document of an answer (RFC 9457). A proxy's own page has none.
  init(response: HTTPURLResponse, body: Data) {
    struct Problem: Decodable {
      var detail: String?
      var title: String?
      var code: String?
    }
    let problem = try? FleetClient.decoder().decode(Problem.self, from: body)
    let status = response.statusCode
    let general: Code =
      switch status {
      case 401: .unauthorized
      case 403: .forbidden
      case 404: .notFound
      case 409, 412: .refused
      case 429: .tooManyRequests
      case 400, 413, 415, 422: .invalidTask
      case 502...504: .unavailable
      default: .unreadableAnswer
      }
    let place = response.value(forHTTPHeaderField: "Location")
    let redirect = 300..<400 ~= status ? place.map { "the server redirects to \($0): use that address" } : nil
    self.init(general, problem?.detail ?? problem?.title ?? redirect ?? "the server answered with status \(status)")
    if let code = problem?.code { self.code = Code(rawValue: code) }
    self.status = status
    self.body = body
    requestID = response.value(forHTTPHeaderField: "X-Request-Id")
    retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init).map { .seconds($0) }
  }
}
