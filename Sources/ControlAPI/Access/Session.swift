import HTTPServer

/// The session of a browser: a secret in a cookie that no script reads, and that is sent only by pages of this server.
enum Session {
  static let cookie = "reelhaul_session"

  /// The name of the cookie at a host or an origin. A browser sends it to all ports of the host, so each has its own.
  ///
  /// - Parameter isOwn: Whether browsers may refuse a cookie of this name that another host of the domain sets: it is for
  ///   all paths, and for HTTPS only.
  static func cookie(at host: String, isOwn: Bool) -> String {
    let port = host.lastIndex(of: ":").flatMap { UInt16(host[host.index(after: $0)...]) }
    return (isOwn ? "__Host-" : "") + cookie + (port.map { "_\($0)" } ?? "")
  }

  /// The value of the cookie in a request; nil if there is none. Of several, pages of other hosts of the domain may have set
  /// some, for longer paths: none is taken.
  static func secret(in request: HTTPRequest, _ cookie: String) -> String? {
    let secrets = request.headers.all("cookie").flatMap { $0.split(separator: ";") }.compactMap { pair -> String? in
      let parts = pair.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
      return parts.count == 2 && parts[0] == cookie ? parts[1] : nil
    }
    return secrets.count == 1 ? secrets[0] : nil
  }

  /// `Set-Cookie`; `secret` empty and `seconds` 0 to forget it.
  static func field(_ cookie: String, _ secret: String, seconds: Int, path: String, isSecure: Bool) -> String {
    "\(cookie)=\(secret); Path=\(path); Max-Age=\(seconds); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
  }
}
