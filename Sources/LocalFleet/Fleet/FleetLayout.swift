import Glibc

/// Where a local fleet keeps what it has, below one data directory.
package struct FleetLayout: Sendable, Hashable {
  package let root: String

  /// `root` is an absolute path.
  package init(root: String) {
    self.root = root
  }

  package var postgres: String { "\(root)/postgres" }
  package var kafka: String { "\(root)/kafka" }
  /// The root of `storage://default`.
  package var storage: String { "\(root)/storage/default" }
  package var logs: String { "\(root)/logs" }
  package var lock: String { "\(root)/lock" }
  /// The settings of the running fleet, for a shell to source: there when, and only when, the fleet is ready.
  package var environmentFile: String { "\(root)/reelhaul.env" }

  package func removeEnvironmentFile() {
    unlink(environmentFile)
  }

  package func log(of process: String) -> String { "\(logs)/\(process).log" }
}
