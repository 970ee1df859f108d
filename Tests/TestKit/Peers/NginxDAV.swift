import Glibc
import ReelhaulSystem

/// Debian's nginx with `PUT`, `DELETE` and `MOVE` into a directory. Ends with its owner, or with this process.
package final class NginxDAV: Sendable {
  package let port: Int
  /// The directory that the files arrive in.
  package var root: String { "\(directory.path)/root" }
  private let directory: TemporaryDirectory
  private let process: ChildProcess

  package static func start() async throws -> NginxDAV {
    for _ in 0..<5 {
      let directory = try TemporaryDirectory(prefix: "reelhaul-dav")
      let port = try LoopbackPort.free()
      let files = directory.path
      mkdir("\(files)/root", 0o755)
      try TextFile.write(configuration(files: files, port: port), to: "\(files)/nginx.conf")
      var options = ChildProcess.Options()
      options.stdout = "\(files)/error.log"
      options.stderr = "\(files)/error.log"
      let executable = access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : "nginx"
      let process = try ChildProcess(executable, ["-e", "\(files)/error.log", "-c", "\(files)/nginx.conf"], options)
      let server = NginxDAV(port: port, directory: directory, process: process)
      while process.status == nil {
        if access("\(files)/nginx.pid", F_OK) == 0 { return server }
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    throw TestFleetError("nginx does not start")
  }

  private init(port: Int, directory: TemporaryDirectory, process: ChildProcess) {
    self.port = port
    self.directory = directory
    self.process = process
    atTestExit { [weak self] in self?.stop() }
  }

  deinit {
    stop()
  }

  package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  package func stop() {
    process.kill(SIGTERM)
    _ = process.waitBlocking()
  }

  private static func configuration(files: String, port: Int) -> String {
    """
    \(geteuid() == 0 ? "user root;" : "")
    daemon off;
    worker_processes 1;
    pid \(files)/nginx.pid;
    events {}
    http {
      access_log off;
      client_max_body_size 0;
      client_body_temp_path \(files)/body;
      proxy_temp_path \(files)/proxy;
      fastcgi_temp_path \(files)/fastcgi;
      uwsgi_temp_path \(files)/uwsgi;
      scgi_temp_path \(files)/scgi;
      server {
        listen 127.0.0.1:\(port);
        root \(files)/root;
        dav_methods PUT DELETE MOVE;
        create_full_put_path on;
      }
    }

    """
  }
}
