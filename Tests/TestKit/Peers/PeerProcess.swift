import Glibc
import ReelhaulSystem
import Testing

/// A server of others, from the Python environment of `deploy/peers.sh`. Ends with its owner, or with this process.
package final class PeerProcess: Sendable {
  package let ports: [Int]
  /// The server's own directory, removed after its end.
  package let directory: TemporaryDirectory
  private let process: ChildProcess
  private let strays: [String]

  private static let package = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

  /// A program of `.build/peers`. Throws if it is not installed.
  static func executable(_ name: String) throws -> String {
    let path = "\(package)/.build/peers/bin/\(name)"
    guard access(path, X_OK) == 0 else { throw TestFleetError("\(path) is missing: run deploy/peers.sh") }
    return path
  }

  /// A file of `Tests/Reference`.
  static func script(_ name: String) -> String { "\(package)/Tests/Reference/\(name)" }

  /// Starts a program and returns once it is ready. Another process can take a free port before it, so a few are tried.
  ///
  /// - Parameters:
  ///   - ports: the number of ports that it needs; on the first one, ``port``, it listens last.
  ///   - strays: files elsewhere that it makes, from the ports. They are removed after its end.
  ///   - isReady: whether it can be used, which it is not before it accepts connections.
  ///   - arguments: from the ports and the directory.
  static func start(
    _ name: String, ports count: Int = 1, environment: [String: String] = [:],
    strays: (_ ports: [Int]) -> [String] = { _ in [] },
    isReady: (PeerProcess) async throws -> Bool = { _ in true },
    arguments: (_ ports: [Int], _ directory: String) throws -> [String]
  ) async throws -> PeerProcess {
    let executable = try executable(name)
    var log = ""
    for _ in 0..<5 {
      let directory = try TemporaryDirectory(prefix: "reelhaul-\(name)")
      let ports = try (0..<count).map { _ in try LoopbackPort.free() }
      var options = ChildProcess.Options()
      options.environment = environment
      options.workingDirectory = directory.path
      options.stdout = "\(directory.path)/log"
      options.stderr = "\(directory.path)/log"
      let process = try ChildProcess(executable, arguments(ports, directory.path), options)
      let peer = PeerProcess(ports: ports, directory: directory, process: process, strays: strays(ports))
      try await eventually("\(name) is ready, or ends", every: .milliseconds(20)) {
        guard peer.isRunning else { return true }
        guard LoopbackPort.accepts(UInt16(ports[0])) else { return false }
        return try await isReady(peer)
      }
      if peer.isRunning { return peer }
      log = peer.log
    }
    throw TestFleetError("\(name) does not start: \(log.suffix(2000))")
  }

  private init(ports: [Int], directory: TemporaryDirectory, process: ChildProcess, strays: [String]) {
    self.ports = ports
    self.directory = directory
    self.process = process
    self.strays = strays
    // One that all tests of the process share is never released.
    atTestExit { [weak self] in
      guard let self else { return }
      stop()
      removeTree(self.directory.path)
    }
  }

  deinit {
    stop()
  }

  /// Ends the server and waits for its end. Blocks its thread for a moment.
  package func stop() {
    process.kill(SIGKILL)
    _ = process.waitBlocking()
    for path in strays { unlink(path) }
  }

  package var isRunning: Bool { process.status == nil }

  /// What the server has written.
  package var log: String { (try? TextFile.read("\(directory.path)/log", limit: 64 << 20)) ?? "" }

  package var port: Int { ports[0] }

  package func url(_ path: String = "") -> String { "http://127.0.0.1:\(port)\(path)" }
}
