import Glibc
import ReelhaulPostgres

/// The programs of one installed PostgreSQL.
package struct PostgresInstallation: Sendable, Equatable {
  package let binaries: String
  /// The major version: `15`.
  package let major: Int

  package var initdb: String { "\(binaries)/initdb" }
  package var postgres: String { "\(binaries)/postgres" }

  /// The newest installed version, or the version that made a data directory.
  package static func find(
    major wanted: Int? = nil, in root: String = "/usr/lib/postgresql"
  ) throws(LocalFleetError) -> PostgresInstallation {
    let oldest = PostgresConfiguration.oldestServer
    let installed = versions(in: root).filter { $0.major >= oldest }.sorted { $0.major > $1.major }
    if let wanted {
      if let match = installed.first(where: { $0.major == wanted }) { return match }
      throw LocalFleetError(
        "the data directory was made by PostgreSQL \(wanted), which is not installed: "
          + "apt-get install postgresql-\(wanted), or choose another data directory")
    }
    guard let newest = installed.first else {
      throw LocalFleetError(
        "no PostgreSQL \(oldest) or newer in \(root): apt-get install postgresql, or give the URL of a running server")
    }
    return newest
  }

  private static func versions(in root: String) -> [PostgresInstallation] {
    guard let directory = opendir(root) else { return [] }
    defer { closedir(directory) }
    var found: [PostgresInstallation] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let major = Int(name) else { continue }
      let binaries = "\(root)/\(name)/bin"
      if access("\(binaries)/postgres", X_OK) == 0, access("\(binaries)/initdb", X_OK) == 0 {
        found.append(PostgresInstallation(binaries: binaries, major: major))
      }
    }
    return found
  }
}
