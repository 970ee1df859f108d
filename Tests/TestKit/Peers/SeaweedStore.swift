import Glibc
import ReelhaulSystem
import Testing

/// SeaweedFS: S3 with verified signatures, and tus.
package struct SeaweedStore: Sendable {
  package let process: PeerProcess
  package let account: S3Account
  /// Where tus uploads are created. A file's path follows: its object is there after the upload.
  package var tusURL: String { filerURL + "/.tus" }
  /// Where files are read by their paths, without signatures.
  package let filerURL: String

  package static func start() async throws -> SeaweedStore {
    let keys = S3Account(endpoint: "")
    // A server's gRPC port is its port + 10000 if it is not given.
    let given = [
      "s3.port", "s3.port.grpc", "filer.port", "filer.port.grpc", "master.port", "master.port.grpc", "volume.port",
      "volume.port.grpc",
    ]
    let sockets = given.map { $0.split(separator: ".").filter { $0 != "port" }.joined(separator: "-") }
    let process = try await PeerProcess.start(
      "weed", ports: given.count, strays: { zip(sockets, $0).map { "/tmp/seaweedfs-\($0)-\($1).sock" } },
      isReady: { process in
        // It listens before it has a volume to write to.
        let boto = S3Reference(S3Account(endpoint: process.url()))
        do {
          try await boto.createBucket("ready")
          try await boto.put("ready", "ready", file: "\(process.directory.path)/s3.json")
          return true
        } catch is TestFleetError {
          return false
        }
      },
      arguments: { free, directory in
        let identity = """
          {"identities": [{"name": "test", "credentials": [{"accessKey": "\(keys.accessKeyID)", \
          "secretKey": "\(keys.secretAccessKey)"}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
          """
        try TextFile.write(identity, to: "\(directory)/s3.json")
        mkdir("\(directory)/data", 0o755)
        return ["-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=\(directory)/data"]
          + ["-s3", "-filer", "-s3.config=\(directory)/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0"]
          + ["-master.telemetry=false", "-master.volumeSizeLimitMB=1024", "-volume.max=20", "-s3.iam=false"]
          + zip(given, free).map { "-\($0)=\($1)" }
      })
    return SeaweedStore(
      process: process, account: S3Account(endpoint: process.url()),
      filerURL: "http://127.0.0.1:\(process.ports[2])")
  }
}
