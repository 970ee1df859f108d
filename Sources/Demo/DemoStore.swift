import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulCodec
import ReelhaulSystem

/// The demo's S3 store, and a client that is not Reelhaul's: rclone is both. Ends with its owner, or with this process.
final class DemoStore: Sendable {
  static let bucket = "films"
  /// The name of the workers' credential.
  static let credential = "demo"

  private let endpoint: String
  private let files: String
  private let process: ChildProcess

  private init(endpoint: String, files: String, process: ChildProcess) {
    self.endpoint = endpoint
    self.files = files
    self.process = process
  }

  deinit {
    process.kill(SIGKILL)
    removeTree("\(files)/data")
  }

  /// Starts the store and returns once it answers.
  ///
  /// - Parameters:
  ///   - files: an existing directory, for its objects.
  ///   - credentials: the file that gets its keys.
  static func start(in files: String, credentials: String) async throws -> DemoStore {
    for _ in 0..<5 {
      // One that ended has taken them with it.
      try makeDirectories("\(files)/data/\(bucket)")
      let port = try FreePort.find()
      let endpoint = "http://127.0.0.1:\(port)"
      let process = try rclone(
        ["serve", "s3", "--addr", "127.0.0.1:\(port)", "--auth-key", "demo,demo-secret", "\(files)/data"],
        output: "\(files)/rclone.log")
      let store = DemoStore(endpoint: endpoint, files: files, process: process)
      while process.status == nil {
        if try await store.run(["lsf", ":s3:"]) != nil {
          let s3 = #"{"accessKeyId": "demo", "secretAccessKey": "demo-secret", "endpoint": "\#(endpoint)"}"#
          try TextFile.write(
            #"{"\#(credential)": {"s3": \#(s3), "allowHTTP": true}}"#, to: credentials, mode: 0o600)
          return store
        }
        try await Task.sleep(for: .milliseconds(100))
      }
    }
    throw WorkError(
      "rclone does not serve S3", hint: "Its messages are in \(files)/rclone.log. 1.65 or newer is needed.")
  }

  /// The digest of an object, as rclone reads it; nil if there is none.
  func sha256(of key: String) async throws -> [UInt8]? {
    let line = try await run(["hashsum", "sha256", "--download", ":s3:\(Self.bucket)/\(key)"])
    return line?.split(separator: " ").first.flatMap { Hex.decode(String($0)) }
  }

  /// What a command of the client prints; nil if it fails.
  private func run(_ arguments: [String]) async throws -> String? {
    let output = "\(files)/output"
    unlink(output)
    let settings = [
      "RCLONE_S3_PROVIDER": "Other", "RCLONE_S3_ENDPOINT": endpoint, "RCLONE_S3_ACCESS_KEY_ID": "demo",
      "RCLONE_S3_SECRET_ACCESS_KEY": "demo-secret",
    ]
    let options = ["--retries", "1", "--low-level-retries", "1"]
    let process = try Self.rclone(arguments + options, settings, output: output, errors: "\(files)/client.log")
    return await process.wait() == .exited(0) ? try TextFile.read(output) : nil
  }

  private static func rclone(
    _ arguments: [String], _ environment: [String: String] = [:], output: String, errors: String? = nil
  ) throws -> ChildProcess {
    var options = ChildProcess.Options()
    options.environment = environment.merging(["RCLONE_CONFIG": "/dev/null"]) { $1 }
    options.stdout = output
    options.stderr = errors ?? output
    do {
      return try ChildProcess("rclone", arguments, options)
    } catch {
      throw WorkError("\(error)", hint: "The demo's S3 store is rclone 1.65 or newer, which deploy/peers.sh installs.")
    }
  }
}
