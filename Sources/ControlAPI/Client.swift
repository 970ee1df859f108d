import HTTPServer

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
    var hops: [String] = []
    for field in request.headers.all("x-forwarded-for") {
      hops += field.split(separator: ",").map { hop in hop.filter { $0 != " " } }
    }
    address = hops.last { !settings.isProxy($0) } ?? request.peer
    if let scheme = request.headers.all("x-forwarded-proto").last { isSecure = scheme.lowercased() == "https" }
  }

  /// Whom failed attempts are counted for: of an IPv6 address its network, because a host has many.
  var network: String {
    guard address.contains(":"), !address.contains(".") else { return address }
    return address.split(separator: ":", omittingEmptySubsequences: false).prefix(4).joined(separator: ":")
  }
}
