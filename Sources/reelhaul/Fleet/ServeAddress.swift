import CommandLineKit
import ControlAPI
import ReelhaulSystem
import TransferEngine
import WorkerOptions

/// Where the HTTP API listens, and how it is reached, as the options of `serve` say.
struct ServeAddress: Sendable {
  var host = "127.0.0.1"
  var settings = ControlAPI.Settings()

  init() {}

  /// Throws ``UsageError``.
  init(_ arguments: Arguments) throws {
    host = arguments[.listenAddress] ?? host
    guard let address = IPAddress(host) else {
      throw UsageError("--address must be an IP address such as 0.0.0.0, not \"\(host)\"")
    }
    let isLoopback = CIDR.isLoopback(address)
    settings.requiresTokens = arguments.given(.tokens).map { $0 == "required" } ?? !isLoopback
    guard settings.requiresTokens || isLoopback else {
      throw UsageError("--tokens off is for loopback: anybody who reaches \(host) could do everything")
    }
    settings.hasOpenMetrics = arguments[flag: .openMetrics]
    settings.requestsPerSecond = arguments.integer(.requestsPerSecond).map { Int($0) }
    settings.names = try Self.hostNames(arguments.all(.hostNames))
    settings.names.insert(host.contains(":") ? "[\(host)]" : host)
    let proxies = try arguments.all(.trustedProxies).map { text in
      do { return try CIDR(text) } catch { throw UsageError("--trusted-proxy: \(error)") }
    }
    settings.isProxy = { peer in IPAddress(peer).map { peer in proxies.contains { $0.contains(peer) } } ?? false }
    settings.corsOrigins = Set(
      try arguments.all(.corsOrigins).map { text in
        guard let (origin, path) = Self.split(text), path.isEmpty else {
          throw UsageError("--cors-origin must be such as https://tools.example, not \"\(text)\"")
        }
        return origin
      })
    try read(url: arguments[.publicURL], prefix: arguments[.pathPrefix])
  }

  private mutating func read(url: String?, prefix: String?) throws(UsageError) {
    if let url {
      guard let (origin, path) = Self.split(url) else {
        throw UsageError("--public-url must be such as https://films.example/reelhaul, not \"\(url)\"")
      }
      settings.publicOrigin = origin
      settings.prefix = path
      let name = origin.drop { $0 != "/" }.dropFirst(2)
      settings.names.insert(String(name.hasPrefix("[") ? name.prefix { $0 != "]" } + "]" : name.prefix { $0 != ":" }))
    }
    guard let prefix else { return }
    settings.prefix = String(prefix.reversed().drop { $0 == "/" }.reversed())
    guard settings.prefix.isEmpty || Self.isPath(settings.prefix[...]) else {
      throw UsageError("--path-prefix must be a path such as /reelhaul, not \"\(prefix)\"")
    }
  }

  /// The origin of a URL of http or https, in lower case, and its path without a slash at the end; nil for other text.
  private static func split(_ text: String) -> (origin: String, path: String)? {
    for scheme in ["https://", "http://"] where text.lowercased().hasPrefix(scheme) {
      let rest = text.dropFirst(scheme.count)
      let host = rest.prefix { $0 != "/" }.lowercased()
      let path = String(rest.dropFirst(host.count).reversed().drop { $0 == "/" }.reversed())
      guard !host.isEmpty, host.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || ".-:[]".contains($0)) }),
        path.isEmpty || isPath(path[...])
      else { return nil }
      return (scheme + host, path)
    }
    return nil
  }

  private static func isPath(_ text: Substring) -> Bool {
    text.hasPrefix("/")
      && text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).allSatisfy { segment in
        !segment.isEmpty && segment != "." && segment != ".."
          && segment.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.~".contains($0)) }
      }
  }

  /// As browsers send them in `Host`, less the port.
  private static func hostNames(_ names: [String]) throws(UsageError) -> Set<String> {
    for name in names where !name.hasPrefix("[") && name.contains(where: { ":/ ".contains($0) }) || name.isEmpty {
      throw UsageError("\"\(name)\" is no host name: give it without scheme, port and path")
    }
    return Set(names.map { $0.lowercased() })
  }
}

extension CIDR {
  fileprivate static func isLoopback(_ address: IPAddress) -> Bool {
    ["127.0.0.0/8", "::1"].contains { (try? CIDR($0))?.contains(address) == true }
  }
}

extension OptionSpec {
  private static let group = "Access"

  static let listenAddress = OptionSpec(
    "address", .text, valueName: "ADDRESS", default: "127.0.0.1", group: group,
    help: "The IP address to listen on, such as 0.0.0.0; others than loopback need tokens")
  static let tokens = OptionSpec(
    "tokens", .choice(["required", "off"]), group: group,
    help: "Whether requests need a token; by default they do unless it listens on loopback")
  static let openMetrics = OptionSpec(
    "open-metrics", .flag, group: group, help: "Let /metrics be read without a token")
  static let requestsPerSecond = OptionSpec(
    "requests-per-second", .integer(1...1_000_000), group: group,
    help: "How many requests a token may send in a second; any number if not given")
  static let hostNames = OptionSpec(
    "name", .text, valueName: "HOST", repeatable: true, group: group,
    help: "A host name by which a proxy calls it, where no tokens are required")
  static let publicURL = OptionSpec(
    "public-url", .text, valueName: "URL", group: group,
    help: "Where browsers reach it, such as https://films.example/reelhaul: gives the name, the prefix and safe cookies"
  )
  static let pathPrefix = OptionSpec(
    "path-prefix", .text, valueName: "PATH", group: group,
    help: "The path below which a proxy has it, such as /reelhaul")
  static let trustedProxies = OptionSpec(
    "trusted-proxy", .text, valueName: "NETWORK", repeatable: true, group: group,
    help: "A proxy whose X-Forwarded-For and X-Forwarded-Proto are believed, such as 10.0.0.0/8")
  static let corsOrigins = OptionSpec(
    "cors-origin", .text, valueName: "ORIGIN", repeatable: true, group: group,
    help: "An origin whose pages may call the API, such as https://tools.example; none if not given")

  static let serving: [OptionSpec] = [
    .listenAddress, .tokens, .openMetrics, .requestsPerSecond, .hostNames, .publicURL, .pathPrefix, .trustedProxies,
    .corsOrigins,
  ]
}
