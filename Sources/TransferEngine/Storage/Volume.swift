import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// A storage root that is mounted and marked as Reelhaul's. It is held open.
///
/// Below the root, `.reelhaul` contains the marker `volume` with the volume's UUID, the directory `staging` on the
/// same file system as all published files, and the lock file `reserve`. Every call blocks.
package final class Volume: Sendable {
  /// The root's name in `storage://NAME/…`.
  package let name: String
  package let path: String
  package let id: UniqueID
  let root: FileDescriptor
  let staging: FileDescriptor
  let reserve: Reserve
  /// Counts how long files take to reach stable storage.
  let syncs: DurationHistogram?
  let directories = DirectorySync()
  let openFiles: OpenStagingFiles?
  /// Whether its staging files may be closed while they are written.
  let closesStagingFiles: Bool
  /// Whether its files may be on another machine.
  let isRemote: Bool
  let renameNoReplace: RenameNoReplace
  /// Held open like `staging`, so that no other file gets its inode.
  private let marker: FileDescriptor
  private let identity: Identity

  /// Renames a file of the first directory to a name in the second, or fails with `EEXIST`. Fails with `EINVAL`,
  /// `ENOSYS` or `EOPNOTSUPP` if the file system does not support it.
  package typealias RenameNoReplace =
    @Sendable (
      _ from: borrowing FileDescriptor, _ name: String, _ to: borrowing FileDescriptor, _ newName: String
    ) throws(SystemError) -> Void

  /// The kernel's own.
  package static let renameNoReplace: RenameNoReplace = { from, name, to, newName throws(SystemError) in
    try FileDescriptor.renameNoReplace(from: from, name, to: to, newName)
  }

  /// Distinguishes this volume from another one at the same path, from no volume, from one with a new mark, and from itself
  /// before it was mounted again: descriptors stay on the old mount, with its flags and without what is mounted below it.
  private struct Identity: Equatable {
    private let numbers: [Int]

    init(marker: stat, staging: stat, mount: UInt64) {
      numbers = [
        Int(bitPattern: marker.st_dev), Int(bitPattern: marker.st_ino), marker.st_mtim.tv_sec, marker.st_mtim.tv_nsec,
        Int(bitPattern: staging.st_dev), Int(bitPattern: staging.st_ino), Int(truncatingIfNeeded: mount),
      ]
    }
  }

  /// Opens the volume at `path`. Tests replace the rename.
  init(
    name: String, path: String, policy: ReservePolicy, syncs: DurationHistogram? = nil,
    openFiles: OpenStagingFiles? = nil,
    renameNoReplace: @escaping RenameNoReplace = Volume.renameNoReplace
  ) throws(StorageError) {
    self.renameNoReplace = renameNoReplace
    self.name = name
    self.path = path
    self.syncs = syncs
    self.openFiles = openFiles
    let own = StorageURL.reserved
    do throws(SystemError) {
      root = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)
    } catch {
      guard error.errno == ENOENT || error.errno == ENOTDIR else { throw StorageError(error, storage: name) }
      throw StorageError(.rootMissing, "storage \(name): there is no directory \(path)")
    }
    do throws(SystemError) {
      marker = try root.openBeneath("\(own)/volume", O_RDONLY)
      staging = try root.openBeneath("\(own)/staging", O_RDONLY | O_DIRECTORY)
      isRemote = staging.isRemote()
      closesStagingFiles = openFiles != nil && staging.closesWithoutWriting()
      identity = try Identity(marker: marker.status(), staging: staging.status(), mount: marker.mount())
      id = try Self.read(marker)
      // Opened for writing, so that a read-only file system is noticed here and not after the download.
      reserve = Reserve(try root.openBeneath("\(own)/reserve", O_RDWR | O_CREAT, mode: 0o600), policy: policy)
    } catch {
      guard error.errno == ENOENT || error.errno == EINVAL else { throw StorageError(error, storage: name) }
      throw StorageError(
        .notInitialised, "storage \(name): \(path) is not a whole Reelhaul volume (\(error)): is it mounted?")
    }
  }

  /// Whether the root's path still leads to this volume: it is not unmounted, no volume is mounted over it, and its
  /// mark is the same.
  package var isMounted: Bool {
    var (marker, staging) = (stat(), stat())
    let mark = "\(path)/\(StorageURL.reserved)/volume"
    return stat(mark, &marker) == 0
      && stat("\(path)/\(StorageURL.reserved)/staging", &staging) == 0
      && Identity(marker: marker, staging: staging, mount: FileDescriptor.mount(at: mark)) == identity
  }

  /// The bytes that a process can still write, how many of them files of tasks that run will need, and free and used space
  /// together, if the file system tells it.
  package func room() throws(StorageError) -> (free: Int64, promised: Int64, total: Int64?) {
    do throws(SystemError) {
      let space = try staging.space()
      return (space.free, try reserve.promised(in: staging), space.total)
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Throws unless ``isMounted``.
  func check() throws(StorageError) {
    guard isMounted else { throw StorageError(.volumeGone, "storage \(name): \(path) is no longer the volume \(id)") }
  }

  /// Throws if the file system has become read-only. Blocks if it accepts no writes, like a frozen file system.
  func checkWritable() throws(StorageError) {
    do throws(SystemError) {
      try root.openBeneath("\(StorageURL.reserved)/reserve", O_RDWR | O_CREAT, mode: 0o600).touch()
    } catch  where error.errno == ENOSPC || error.errno == EDQUOT {
      // Deletions, which need a usable storage, make room on it.
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Marks the directory `path` as a volume. Writes nothing if it is one already, because it may be full or read-only.
  /// Returns whether this call marked it. Tests replace the rename.
  @discardableResult
  package static func initialise(
    name: String, path: String, renameNoReplace: RenameNoReplace = Volume.renameNoReplace
  ) throws(StorageError) -> Bool {
    do throws(SystemError) {
      try makeDirectories(path)
      let root = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)
      if try isMarked(root) { return false }
      try make(StorageURL.reserved, in: root)
      let own = try root.openBeneath(StorageURL.reserved, O_RDONLY | O_DIRECTORY)
      try make("staging", in: own)
      let isNew = try writeMarker(own, by: renameNoReplace)
      try own.sync()
      try root.sync()
      return isNew
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Whether the directory `path` has the mark of a volume.
  package static func hasMark(_ path: String) throws(SystemError) -> Bool {
    try hasMark(try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY))
  }

  private static func hasMark(_ root: borrowing FileDescriptor) throws(SystemError) -> Bool {
    do throws(SystemError) {
      // A pipe must not be waited for, and is no mark.
      let marker = try root.openBeneath("\(StorageURL.reserved)/volume", O_RDONLY | O_NONBLOCK)
      guard try marker.status().st_mode & S_IFMT == S_IFREG else { return false }
      _ = try read(marker)
      return true
    } catch  where error.errno == ENOENT || error.errno == EINVAL {
      return false
    }
  }

  private static func isMarked(_ root: borrowing FileDescriptor) throws(SystemError) -> Bool {
    guard try hasMark(root) else { return false }
    do throws(SystemError) {
      _ = try root.openBeneath("\(StorageURL.reserved)/staging", O_RDONLY | O_DIRECTORY)
      return true
    } catch  where error.errno == ENOENT {
      return false
    }
  }

  static func make(_ name: String, in directory: borrowing FileDescriptor) throws(SystemError) {
    do throws(SystemError) {
      try directory.makeDirectory(name, mode: 0o700)
    } catch  where error.errno == EEXIST {
    }
  }

  /// Writes the marker so that it appears completely. If two processes write one, the first marker stays. Returns
  /// whether it is this one.
  private static func writeMarker(
    _ own: borrowing FileDescriptor, by rename: RenameNoReplace
  ) throws(SystemError) -> Bool {
    let id = UniqueID(milliseconds: Clocks.realtimeMilliseconds())
    let draft = "volume-\(id)"
    let file = try own.openBeneath(draft, O_WRONLY | O_CREAT | O_EXCL)
    do throws(SystemError) {
      try file.write("\(id)\n", at: 0)
      try file.sync()
      try moveNoReplace(from: own, draft, to: own, "volume", by: rename)
      return true
    } catch {
      try? own.remove(draft)
      guard error.errno == EEXIST else { throw error }
      return false
    }
  }

  private static func read(_ marker: borrowing FileDescriptor) throws(SystemError) -> UniqueID {
    let bytes = try marker.read(0..<64)
    guard let id = UniqueID(String(decoding: bytes.prefix(36), as: UTF8.self)) else {
      throw SystemError(errno: EINVAL, operation: "read \(marker.path)")
    }
    return id
  }
}
