import Glibc
import ReelhaulSystem

/// Debian's nginx, which serves a directory on a free loopback port. Ends with its owner, or with this process.
package final class NginxOrigin: Sendable {
  package let port: Int
  private let scheme: String
  private let files: String
  private let process: ChildProcess

  private init(port: Int, scheme: String, files: String, process: ChildProcess) {
    self.port = port
    self.scheme = scheme
    self.files = files
    self.process = process
  }

  deinit {
    process.kill(SIGTERM)
  }

  /// `path` begins with a slash. `host`: one of the addresses that nginx listens on, counted from 1.
  package func url(_ path: String, host: Int = 1) -> String {
    "\(scheme)://127.0.0.\(host):\(port)\(path)"
  }

  /// Starts nginx and returns once it listens. Another process can take the free port before nginx binds it, so a few
  /// ports are tried.
  ///
  /// - Parameters:
  ///   - root: the directory to serve.
  ///   - files: an existing directory for nginx's own files.
  ///   - rate: bytes per second and connection; nil for no limit.
  ///   - hosts: how many loopback addresses it listens on, from 127.0.0.1 on: each is another host for its clients.
  ///   - certificate: PEM files of a certificate and its key: the origin then speaks TLS.
  ///   - http2: only HTTP/2, without TLS: for a server behind one that speaks TLS.
  package static func start(
    serving root: String, files: String, rate: Int? = nil, hosts: Int = 1,
    certificate: (chain: String, key: String)? = nil, http2: Bool = false
  ) async throws -> NginxOrigin {
    for _ in 0..<5 {
      let port = try FreePort.find()
      let text = configuration(
        root: root, files: files, port: port, rate: rate, hosts: hosts, certificate: certificate, http2: http2)
      if let origin = try await start(text, files: files, port: port, scheme: certificate == nil ? "http" : "https") {
        return origin
      }
    }
    throw SystemError(errno: EADDRINUSE, operation: "start nginx (its messages are in \(files)/error.log)")
  }

  /// Debian installs it where only root's PATH leads.
  private static var executable: String {
    LocalFile.isExecutable("/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx"
  }

  private static func start(_ text: String, files: String, port: Int, scheme: String) async throws -> NginxOrigin? {
    for left in ["access.log", "nginx.pid"] { unlink("\(files)/\(left)") }
    try TextFile.write(text, to: "\(files)/nginx.conf")
    var options = ChildProcess.Options()
    options.stdout = "\(files)/error.log"
    options.stderr = options.stdout
    let process = try ChildProcess(executable, ["-e", "\(files)/error.log", "-c", "\(files)/nginx.conf"], options)
    let origin = NginxOrigin(port: port, scheme: scheme, files: files, process: process)
    // nginx writes the file once its socket listens.
    while access("\(files)/nginx.pid", F_OK) != 0 {
      guard process.status == nil else { return nil }
      do {
        try await Task.sleep(for: .milliseconds(5))
      } catch {
        await origin.close()
        throw error
      }
    }
    return origin
  }

  /// Tells nginx to end, and waits for its end.
  package func close() async {
    process.kill(SIGTERM)
    _ = await process.wait()
  }

  /// Has a line `/name bytes` for each response with more than one byte: the number of body bytes sent. Complete once
  /// nginx is closed.
  package var accessLog: String { "\(files)/access.log" }

  private static func configuration(
    root: String, files: String, port: Int, rate: Int?, hosts: Int, certificate: (chain: String, key: String)?,
    http2: Bool
  ) -> String {
    func word(_ path: String) -> String {
      "\"" + path.flatMap { $0 == "\"" || $0 == "\\" ? ["\\", $0] : [$0] } + "\""
    }
    let options = (certificate == nil ? "" : " ssl") + (http2 ? " http2" : "")
    let listens = (1...hosts).map { "listen 127.0.0.\($0):\(port) backlog=1024\(options);" }
    return """
      \(geteuid() == 0 ? "user root;" : "")
      daemon off;
      worker_processes 2;
      pid \(word("\(files)/nginx.pid"));
      events { worker_connections 8192; }
      http {
        log_format bytes '$uri $body_bytes_sent';
        # All but the request for one byte that every download ends with.
        map $http_range $counts { "bytes=0-0" 0; default 1; }
        access_log \(word("\(files)/access.log")) bytes if=$counts;
        sendfile on;
        tcp_nopush on;
        types { video/mp4 mp4; }
        default_type application/octet-stream;
        client_body_temp_path \(word("\(files)/body"));
        proxy_temp_path \(word("\(files)/proxy"));
        fastcgi_temp_path \(word("\(files)/fastcgi"));
        uwsgi_temp_path \(word("\(files)/uwsgi"));
        scgi_temp_path \(word("\(files)/scgi"));
        server {
          \(listens.joined(separator: "\n        "))
          root \(word(root));
          \(rate.map { "limit_rate \($0);" } ?? "")
          \(certificate.map { "ssl_certificate \(word($0.chain)); ssl_certificate_key \(word($0.key));" } ?? "")
        }
      }

      """
  }
}
