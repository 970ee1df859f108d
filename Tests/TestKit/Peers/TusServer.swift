import Glibc
import ReelhaulSystem

/// A tus server of others.
package struct TusServer: Sendable {
  package enum Kind: String, CaseIterable, Sendable {
    case tuspyserver, tussi
  }

  package let process: PeerProcess
  /// Where uploads are created.
  package var url: String { process.url("/files") }

  /// The contents of all files that it keeps.
  package func files() throws -> [[UInt8]] {
    try Self.files(below: process.directory.path + "/files")
  }

  private static func files(below path: String) throws -> [[UInt8]] {
    var found: [[UInt8]] = []
    let directory = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    while case let names = try directory.nextEntries(), !names.isEmpty {
      for name in names {
        let isDirectory = try directory.status(of: name).st_mode & S_IFMT == S_IFDIR
        found +=
          try isDirectory ? files(below: "\(path)/\(name)") : [TextFile.bytes(of: "\(path)/\(name)", limit: 1 << 30)]
      }
    }
    return found
  }

  package static func start(_ kind: Kind) async throws -> TusServer {
    let process = try await PeerProcess.start("python") { ports, directory in
      [PeerProcess.script("tus_server.py"), kind.rawValue, "\(ports[0])", "\(directory)/files"]
    }
    return TusServer(process: process)
  }
}
