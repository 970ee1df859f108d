import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// The named storage roots of this process: `storage://NAME/…` is below the root NAME.
///
/// A root is opened when it is first needed, and checked at every use. So a root that is mounted late, or was away,
/// needs no restart. Every call blocks for as long as the file system takes.
package final class Storage: Sendable {
  /// The directories of the roots, by name.
  package let roots: [String: String]
  package let syncs = DurationHistogram(
    "reelhaul_sync_seconds", help: "How long the written bytes of a file took to reach stable storage.")
  private let policy: ReservePolicy
  private let openFiles: OpenStagingFiles
  private let mounted = Lock<[String: Volume]>([:])
  private let silent = Lock<Set<String>>([])

  /// - Parameter openFiles: How many staging files are open at most, where the file system allows it to close them while
  ///   they are written.
  package init(
    roots: [String: String], reserve policy: ReservePolicy = ReservePolicy(),
    openFiles: Int = OpenStagingFiles.standardLimit
  ) {
    self.roots = roots
    self.openFiles = OpenStagingFiles(limit: openFiles)
    self.policy = policy
  }

  /// Parses `name=/path,…`, the form of `REELHAUL_STORAGE`. Returns the directories of the roots, by name.
  package static func roots(parsing list: String) throws(InvalidStorageRoot) -> [String: String] {
    var roots: [String: String] = [:]
    for entry in list.split(separator: ",") {
      let parts = entry.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2, StorageURL.isRootName(parts[0]), parts[1].hasPrefix("/") else {
        throw InvalidStorageRoot(text: String(entry), reason: "write NAME=/PATH")
      }
      guard roots.updateValue(parts[1], forKey: parts[0]) == nil else {
        throw InvalidStorageRoot(text: String(entry), reason: "\(parts[0]) is named twice")
      }
    }
    return roots
  }

  /// Marks every root that has no mark as a volume. Only for roots that are not mounts: an empty mount point would
  /// become a separate volume. Returns the names of the roots that this call marked.
  @discardableResult
  package func initialise() throws(StorageError) -> Set<String> {
    var marked: Set<String> = []
    for (name, path) in roots where try Volume.initialise(name: name, path: path) { marked.insert(name) }
    return marked
  }

  /// The volume that is mounted at the root `name` now.
  package func volume(_ name: String) throws(StorageError) -> Volume {
    guard let path = roots[name] else { throw .unknownRoot(name) }
    if let volume = mounted.withLock({ $0[name] }), volume.isMounted { return volume }
    do throws(StorageError) {
      let volume = try Volume(name: name, path: path, policy: policy, syncs: syncs, openFiles: openFiles)
      mounted.withLock { $0[name] = volume }
      return volume
    } catch {
      mounted.withLock { $0[name] = nil }
      throw error
    }
  }

  /// Whether the file system of the root `name` answers, as far as is known. A call on one that does not may never end.
  package func answers(_ name: String) -> Bool { silent.withLock { !$0.contains(name) } }

  /// Who checks the roots has found out that one answers, or does not.
  package func note(_ name: String, answers: Bool) {
    silent.withLock { if answers { $0.remove(name) } else { $0.insert(name) } }
  }

  /// The volume at the root `name`, if it can be written to now.
  package func usable(_ name: String) throws(StorageError) -> Volume {
    let volume = try volume(name)
    try volume.checkWritable()
    return volume
  }

  /// The roots that can be used now, and their volumes' UUIDs.
  package var volumes: [String: UniqueID] {
    var volumes: [String: UniqueID] = [:]
    for name in roots.keys { volumes[name] = try? volume(name).id }
    return volumes
  }

  /// A new staging file for `destination`; see ``Volume/create(_:)``.
  package func create(for destination: StorageURL, name: StagingName) throws(StorageError) -> StagingFile {
    try volume(destination.root).create(name)
  }

  /// The staging file of `checkpoint`; see ``Volume/adopt(_:minimumSize:)``. `storage_volume_gone` if another volume
  /// is at the root.
  package func adopt(
    for destination: StorageURL, task: UniqueID, checkpoint: DownloadCheckpoint
  ) throws(StorageError) -> StagingFile {
    let volume = try volume(destination.root)
    guard volume.id == checkpoint.volume else {
      throw StorageError(
        .volumeGone,
        "storage \(volume.name): the task's bytes are on volume \(checkpoint.volume), but volume \(volume.id) is mounted"
      )
    }
    guard let name = StagingName(checkpoint.stagingName), name.task == task, name.generation == checkpoint.generation
    else {
      throw StorageError(.stagingForeign, "the checkpoint's staging file \(checkpoint.stagingName) is not this task's")
    }
    return try volume.adopt(name, minimumSize: checkpoint.done.ranges.last?.upperBound ?? 0)
  }
}

/// A text that is not a storage root.
package struct InvalidStorageRoot: Error, Hashable, Sendable, CustomStringConvertible {
  package var text: String
  package var reason: String

  package var description: String { "\"\(text)\" is not a storage root: \(reason)" }
}
