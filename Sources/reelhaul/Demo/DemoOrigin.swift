import Glibc
import LocalFleet
import System

/// nginx on a free loopback port, serving the demo's films, a few MiB a second for each connection, and writing down
/// what it sends.
final class DemoOrigin: Sendable {
  /// Per connection, so that the films take some seconds and parallel ranges are worth something.
  private static let limit = "6m"

  let port: Int
  private let accessLog: String
  private let process: ChildProcess

  private init(port: Int, accessLog: String, process: ChildProcess) {
    self.port = port
    self.accessLog = accessLog
    self.process = process
  }

  func url(of film: DemoFilm) -> String { "http://127.0.0.1:\(port)/\(film.fileName)" }

  /// `directory` is for nginx's own files.
  static func start(serving root: String, in directory: String) async throws -> DemoOrigin {
    for _ in 0..<5 {
      if let origin = try await start(serving: root, in: directory, port: FreePort.find()) { return origin }
    }
    throw CommandFailure(.failed, "nginx does not start", hint: "Its messages are in \(directory)/error.log.")
  }

  private static func start(serving root: String, in directory: String, port: Int) async throws -> DemoOrigin? {
    let accessLog = "\(directory)/access.log"
    unlink(accessLog)
    let file = "\(directory)/nginx.conf"
    try TextFile.write(configuration(root: root, directory: directory, port: port), to: file)
    var options = ChildProcess.Options()
    options.stdout = "\(directory)/error.log"
    options.stderr = "\(directory)/error.log"
    let process: ChildProcess
    do {
      process = try ChildProcess("nginx", ["-e", "\(directory)/error.log", "-c", file], options)
    } catch {
      throw CommandFailure(.failed, "\(error)", hint: "The demo's films come from nginx: apt-get install nginx-light.")
    }
    // Written once its socket listens.
    while access("\(directory)/nginx.pid", F_OK) != 0 {
      guard process.status == nil else { return nil }
      try await Task.sleep(for: .milliseconds(10))
    }
    return DemoOrigin(port: port, accessLog: accessLog, process: process)
  }

  /// The body bytes it has sent of each file; complete once it is closed.
  func sent() throws -> [String: Int64] {
    try OriginLog.sent(TextFile.read(accessLog, limit: 64 << 20))
  }

  /// Ends it; what it sent is all written down then.
  func close() async {
    process.kill(SIGTERM)
    _ = await process.wait()
  }

  private static func configuration(root: String, directory: String, port: Int) -> String {
    """
    \(geteuid() == 0 ? "user root;" : "")
    daemon off;
    worker_processes 1;
    pid \(directory)/nginx.pid;
    events { worker_connections 1024; }
    http {
      log_format bytes '$uri $body_bytes_sent';
      access_log \(accessLogName(directory)) bytes;
      sendfile on;
      types { video/mp4 mp4; }
      client_body_temp_path \(directory)/body;
      proxy_temp_path \(directory)/proxy;
      fastcgi_temp_path \(directory)/fastcgi;
      uwsgi_temp_path \(directory)/uwsgi;
      scgi_temp_path \(directory)/scgi;
      server {
        listen 127.0.0.1:\(port) backlog=1024;
        root \(root);
        limit_rate \(limit);
      }
    }

    """
  }

  private static func accessLogName(_ directory: String) -> String { "\(directory)/access.log" }
}
