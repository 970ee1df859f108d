import HTTPServer

/// The session of a browser: a secret in a cookie that no script reads, and that is sent only by pages of this server.
enum Session {
  static let cookie = "reelhaul_session"

  /// The name of the cookie at a host or an origin. A browser sends it to all ports of the host, so each has its own.
  static func cookie(at host: String) -> String {
    let port = host.lastIndex(of: ":").flatMap { UInt16(host[host.index(after: $0)...]) }
    return port.map { "\(cookie)_\($0)" } ?? cookie
  }

  /// The value of the cookie in a request; nil if there is none.
  static func secret(in request: HTTPRequest, _ cookie: String) -> String? {
    for field in request.headers.all("cookie") {
      for pair in field.split(separator: ";") {
        let parts = pair.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
        if parts.count == 2, parts[0] == cookie { return parts[1] }
      }
    }
    return nil
  }

  /// `Set-Cookie`; `secret` empty and `seconds` 0 to forget it.
  static func field(_ cookie: String, _ secret: String, seconds: Int, path: String, isSecure: Bool) -> String {
    "\(cookie)=\(secret); Path=\(path); Max-Age=\(seconds); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
  }
}
