import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A fleet's HTTP API, as `reelhaul serve` offers it. Needs nothing but Foundation, so that an app or a service on any
/// platform can submit tasks and follow them.
///
/// ```swift
/// let fleet = FleetClient(url: address, token: token)
/// let id = try await fleet.submit(NewTask(kind: "download", source: "https://example.com/film.mp4",
///                                         destination: "storage://default/film.mp4"))
/// for try await progress in fleet.progress(of: id) {
///   print(progress.fraction ?? 0)
/// }
/// ```
///
/// A redirect is not followed, because the token is for this server alone: it is an error that names the other address.
///
/// Every call throws ``FleetError``, or `CancellationError` if its task was canceled. Requests are repeated after passing
/// errors, and submits and commands take effect once, because a repetition has the same `Idempotency-Key`. Streams
/// reconnect by themselves and lose no event.
public struct FleetClient: Sendable {
  /// How patient a client is.
  public struct Configuration: Sendable {
    /// How often a request is tried in all. At least 1.
    public var attempts = 5
    /// How long an answer may take, and how long a stream may say nothing. Servers say something every 15 s.
    public var timeout: Duration = .seconds(45)
    /// The rest before the second attempt; it doubles with each one, up to `longestDelay`.
    public var firstDelay: Duration = .milliseconds(250)
    public var longestDelay: Duration = .seconds(15)

    public init() {}
  }

  public let url: URL
  let token: String?
  let configuration: Configuration
  let exchanges: PlainExchanges

  /// - Parameters:
  ///   - url: The address of the server, with the path prefix if it has one: `https://media.example/reelhaul`.
  ///   - token: As `reelhaul token create` prints it. A server of this machine may need none.
  ///   - configuration: How patient the client is.
  public init(url: URL, token: String? = nil, configuration: Configuration = .init()) {
    self.url = url
    self.token = token
    self.configuration = configuration
    exchanges = PlainExchanges(timeout: configuration.timeout)
  }

  /// The request for a path below the server's address. Members of the query whose value is nil are left out.
  func request(
    _ method: String, _ path: [String], query: [(String, String?)] = [], body: Data? = nil, type: String? = nil
  ) -> URLRequest {
    var place = url
    for part in path { place.appendPathComponent(part) }
    if var parts = URLComponents(url: place, resolvingAgainstBaseURL: false) {
      let items = query.compactMap { name, value in value.map { "\(name)=\(Self.escaped($0))" } }
      parts.percentEncodedQuery = items.isEmpty ? nil : items.joined(separator: "&")
      place = parts.url ?? place
    }
    var request = URLRequest(url: place)
    request.httpMethod = method
    request.httpBody = body
    if let type { request.setValue(type, forHTTPHeaderField: "Content-Type") }
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    request.setValue("application/json", forHTTPHeaderField: "Accept")
    return request
  }

  /// `+`, `&` and `=` would mean something else in a query.
  private static func escaped(_ text: String) -> String {
    let plain = CharacterSet(charactersIn: "-._~").union(.alphanumerics).intersection(
      CharacterSet(charactersIn: "\0"..."~"))
    return text.addingPercentEncoding(withAllowedCharacters: plain) ?? ""
  }
}

extension Duration {
  var timeInterval: TimeInterval {
    TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18
  }
}
