import Glibc

/// `rclone serve s3`, which verifies signatures. Its buckets are directories.
package struct RcloneStore: Sendable {
  package let process: PeerProcess
  package let account: S3Account

  package static func start() async throws -> RcloneStore {
    let keys = S3Account(endpoint: "")
    let process = try await PeerProcess.start("rclone") { ports, directory in
      mkdir("\(directory)/data", 0o755)
      return [
        "serve", "s3", "--addr", "127.0.0.1:\(ports[0])", "--auth-key",
        "\(keys.accessKeyID),\(keys.secretAccessKey)", "--config", "\(directory)/none", "--vfs-cache-mode", "off",
        "--cache-dir", "\(directory)/cache", "\(directory)/data",
      ]
    }
    return RcloneStore(process: process, account: S3Account(endpoint: process.url()))
  }
}
