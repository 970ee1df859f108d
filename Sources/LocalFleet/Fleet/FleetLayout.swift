import Glibc

/// The paths of a local fleet, below one data directory.
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
  /// The settings of the running fleet, for a shell to source. The file exists exactly while the fleet is ready.
  package var environmentFile: String { "\(root)/reelhaul.env" }

  package func removeEnvironmentFile() {
    unlink(environmentFile)
  }

  package func log(of process: String) -> String { "\(logs)/\(process).log" }
}
