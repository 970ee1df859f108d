import Glibc
import System

/// Debian's nginx on a free loopback port, serving a directory. Ends with its owner, or with the test process.
package final class NginxOrigin: Sendable {
  package let port: UInt16
  private let directory: TemporaryDirectory
  private let process: ChildProcess

  private init(port: UInt16, directory: TemporaryDirectory, process: ChildProcess) {
    self.port = port
    self.directory = directory
    self.process = process
  }

  deinit {
    process.kill(SIGTERM)
  }

  package func url(_ path: String) -> String {
    "http://127.0.0.1:\(port)\(path)"
  }

  /// Starts nginx and returns once it accepts connections.
  ///
  /// The free port can be lost to another process before nginx binds it, so a few are tried.
  package static func start(serving root: String) async throws -> NginxOrigin {
    for _ in 0..<5 {
      if let origin = try await start(serving: root, port: try LoopbackPort.free()) { return origin }
    }
    throw SystemError(errno: EADDRINUSE, operation: "start nginx")
  }

  private static func start(serving root: String, port: UInt16) async throws -> NginxOrigin? {
    let directory = try TemporaryDirectory(prefix: "nginx")
    let file = "\(directory.path)/nginx.conf"
    let descriptor = try FileDescriptor.open(file, O_WRONLY | O_CREAT | O_TRUNC)
    let text = Array(configuration(root: root, port: port, directory: directory.path).utf8)
    try text.withUnsafeBytes { bytes in try descriptor.write(bytes, at: 0) }
    var options = ChildProcess.Options()
    options.stdout = "\(directory.path)/out"
    options.stderr = "\(directory.path)/out"
    let process = try ChildProcess("nginx", ["-e", "\(directory.path)/error.log", "-c", file], options)
    while process.status == nil {
      if LoopbackPort.accepts(port) { return NginxOrigin(port: port, directory: directory, process: process) }
      // Nothing reports that another program listens; it is asked again.
      try await Task.sleep(for: .milliseconds(5))
    }
    return nil
  }

  /// Asks nginx to end, and waits for it.
  package func close() async {
    process.kill(SIGTERM)
    _ = await process.wait()
  }

  private static func configuration(root: String, port: UInt16, directory: String) -> String {
    """
    \(geteuid() == 0 ? "user root;" : "")
    daemon off;
    worker_processes 2;
    pid \(directory)/nginx.pid;
    events { worker_connections 1024; }
    http {
      access_log off;
      sendfile on;
      tcp_nopush on;
      types { video/mp4 mp4; }
      default_type application/octet-stream;
      client_body_temp_path \(directory)/body;
      proxy_temp_path \(directory)/proxy;
      fastcgi_temp_path \(directory)/fastcgi;
      uwsgi_temp_path \(directory)/uwsgi;
      scgi_temp_path \(directory)/scgi;
      server {
        listen 127.0.0.1:\(port) backlog=1024;
        root \(root);
      }
    }
    """
  }
}
