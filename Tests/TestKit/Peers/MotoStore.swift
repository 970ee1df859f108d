/// moto's S3, which verifies nothing but follows AWS's API closely: conditions, checksums, versions.
package struct MotoStore: Sendable {
  package let process: PeerProcess
  package let account: S3Account

  package static func start() async throws -> MotoStore {
    let process = try await PeerProcess.start("moto_server") { ports, _ in
      ["-H", "127.0.0.1", "-p", "\(ports[0])"]
    }
    return MotoStore(process: process, account: S3Account(endpoint: process.url()))
  }
}
