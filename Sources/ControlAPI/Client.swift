import HTTPServer
import ReelhaulSystem

/// Where a request comes from, as its connection tells, and those proxies that are believed.
struct Client: Hashable, Sendable {
  /// Without port.
  var address: String
  var isSecure: Bool

  init(_ request: HTTPRequest, _ settings: ControlAPI.Settings) {
    address = request.peer
    isSecure = settings.publicOrigin.hasPrefix("https://")
    guard settings.isProxy(request.peer) else { return }
    // Each proxy adds the address that it saw; a client can have sent what stands before.
    let hops = request.headers.all("x-forwarded-for").flatMap {
      $0.split(separator: ",").map { Self.address(ofHop: $0) }
    }
    // What is no address, such as `unknown`, is nobody who could be told from others behind this proxy.
    let client = hops.last { hop in hop.map { !settings.isProxy($0) } ?? true }
    address = client.flatMap { $0 } ?? request.peer
    if let scheme = request.headers.all("x-forwarded-proto").last { isSecure = scheme.lowercased() == "https" }
  }

  /// Whom failed attempts are counted for: of an IPv6 address its network, because a host has many.
  var network: String {
    switch IPAddress(address) {
    case .v6(let bits): "\(IPAddress.v6((bits >> 64) << 64))/64"
    case .v4(let bits): "\(IPAddress.v4(bits))"
    case nil: address
    }
  }

  /// The address of a hop, which may have a port: `192.0.2.1:80` or `[2001:db8::1]:80`. Nil if it is none.
  private static func address(ofHop text: some StringProtocol) -> String? {
    let hop = String(text).filter { $0 != " " && $0 != "\t" }
    let parts = hop.split(separator: ":", omittingEmptySubsequences: false)
    let host =
      if hop.hasPrefix("[") { String(hop.dropFirst().prefix { $0 != "]" }) } else {
        parts.count == 2 ? String(parts[0]) : hop
      }
    return IPAddress(host)?.description
  }
}
