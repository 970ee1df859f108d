import Glibc
import ReelhaulSystem
import TaskCore

/// Deletes the entry at a storage URL: a file, a symbolic link itself, or a directory with everything in it.
///
/// It works only beneath the root, follows no symbolic link, and enters no other file system. Running it again after a
/// crash deletes the rest. All calls block.
package struct Deletion: Sendable {
  /// `files` counts all entries except directories; `bytes` is the sum of the sizes of regular files.
  package struct Count: Hashable, Sendable {
    package var files: Int64 = 0
    package var bytes: Int64 = 0

    package init(files: Int64 = 0, bytes: Int64 = 0) {
      self.files = files
      self.bytes = bytes
    }

    /// Saturates: sparse files and hard links may add up to more than any disk holds.
    package static func + (a: Count, b: Count) -> Count {
      let (bytes, overflows) = a.bytes.addingReportingOverflow(b.bytes)
      return Count(files: a.files + b.files, bytes: overflows ? .max : bytes)
    }
    package static func - (a: Count, b: Count) -> Count { Count(files: a.files - b.files, bytes: a.bytes - b.bytes) }
  }

  /// Controls the deletion and receives its progress.
  package protocol Observer: Sendable {
    /// Whether the run may go on. The deletion checks this before every change, and ends if it is false.
    var goesOn: Bool { get }
    /// Receives the sum of all that this call has deleted so far.
    func deleted(_ count: Count)
  }

  private static let depthLimit = 500

  private let volume: Volume
  private let url: StorageURL
  private let isRecursive: Bool
  private let observer: any Observer

  /// - Parameter isRecursive: Whether a directory may be deleted. If not, one fails with class `retry`: it has taken the
  ///   place of the file that ``look()`` found.
  package init(_ url: StorageURL, on volume: Volume, isRecursive: Bool, observer: any Observer) {
    self.url = url
    self.volume = volume
    self.isRecursive = isRecursive
    self.observer = observer
  }

  package enum Target: Hashable, Sendable {
    case absent
    case file(Version)
    case directory
    /// A symbolic link, a FIFO, a socket, a device.
    case special
  }

  /// Identifies a regular file and its contents. Another file, or a changed one, has another version.
  package struct Version: Hashable, Sendable {
    package let size: Int64
    private let device: dev_t
    private let inode: ino_t
    /// Needed besides the inode, because a new file may get the inode of a removed one.
    private let modifiedAt: [Int]

    init(_ status: stat) {
      size = Int64(status.st_size)
      device = status.st_dev
      inode = status.st_ino
      modifiedAt = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    }
  }

  /// Finds out what the URL names now.
  package func look() throws(StorageError) -> Target {
    try volume.check()
    do throws(SystemError) {
      let status = try parent().status(of: name)
      return switch status.st_mode & S_IFMT {
      case S_IFREG: .file(Version(status))
      case S_IFDIR: .directory
      default: .special
      }
    } catch {
      if error.errno == ENOENT { return .absent }
      throw StorageError(error, storage: volume.name)
    }
  }

  /// Counts everything in a directory. Returns nil if the observer ended the count.
  package func survey() throws(StorageError) -> Count? {
    do throws(SystemError) {
      let parent = try parent()
      var count = Count()
      return try survey(parent, name, depth: 0, &count) ? count : nil
    } catch {
      if error.errno == ENOENT { return Count() }
      throw StorageError(error, storage: volume.name)
    }
  }

  /// Deletes the entry; a missing entry is not an error. Returns true if everything is gone, and the deletion is then
  /// durable. Returns false if the observer ended it before.
  package func run() throws(StorageError) -> Bool {
    try volume.check()
    do throws(SystemError) {
      let parent = try parent()
      var count = Count()
      do throws(SystemError) {
        guard try delete(parent, name, depth: 0, &count) else { return false }
      } catch  where error.errno == ENOENT {
        // An earlier run may have removed the entry without syncing the directory. So the sync still follows.
      }
      try volume.directories.sync(parent)
      return true
    } catch {
      if error.errno == ENOENT { return true }
      throw StorageError(error, storage: volume.name)
    }
  }

  /// Makes durable what an earlier call has deleted.
  package func sync() throws(StorageError) {
    try volume.check()
    do throws(SystemError) {
      try volume.directories.sync(parent())
    } catch {
      if error.errno != ENOENT { throw StorageError(error, storage: volume.name) }
    }
  }

  /// Deletes only the regular file that was verified, not a file that has taken its name since: moves the file to the
  /// name `aside`, compares it, and then removes it or moves it back. Returns true if the file was there and is gone,
  /// and the deletion is then durable. Returns false if the file was missing or the observer ended the call.
  package func runExactly(_ version: Version, aside: StagingName) throws(StorageError) -> Bool {
    try volume.check()
    guard observer.goesOn else { return false }
    do throws(SystemError) {
      let parent = try parent()
      let replaced = SystemError(errno: EAGAIN, operation: "delete \(url): it was replaced while it was verified")
      // This check finds most replacements. Moving the file aside is for one that happens between here and the next
      // call.
      guard try Version(parent.status(of: name)) == version else { throw replaced }
      try FileDescriptor.rename(from: parent, url.name, to: volume.staging, aside.description)
      guard try Version(volume.staging.status(of: aside.description)) == version else {
        try volume.moveNoReplace(aside.description, to: parent, url.name)
        throw replaced
      }
      try volume.staging.remove(aside.description)
      observer.deleted(Count(files: 1, bytes: version.size))
      try volume.directories.sync(parent)
      return true
    } catch {
      if error.errno == ENOENT { return false }
      throw StorageError(error, storage: volume.name)
    }
  }

  private var name: EntryName { EntryName(url.name) }

  /// A volume is one file system: nothing on another one is deleted, and none that is not mounted now counts as absent.
  private func parent() throws(SystemError) -> FileDescriptor {
    let parent = try volume.parent(of: url, crossesMounts: false)
    guard try parent.status().st_dev == volume.root.status().st_dev else { throw .otherFileSystem(parent.path) }
    return parent
  }

  private func survey(
    _ parent: borrowing FileDescriptor, _ name: EntryName, depth: Int, _ count: inout Count
  ) throws(SystemError) -> Bool {
    guard observer.goesOn else { return false }
    let status = try parent.status(of: name)
    guard status.st_mode & S_IFMT == S_IFDIR else {
      count = count + Self.count(of: status)
      return true
    }
    let directory = try enter(parent, name, depth: depth)
    while case let entries = try directory.nextEntries(), !entries.isEmpty {
      for entry in entries {
        do throws(SystemError) {
          guard try survey(directory, entry, depth: depth + 1, &count) else { return false }
        } catch  where error.errno == ENOENT {
          // Another process has removed it in the meantime.
        }
      }
    }
    return true
  }

  private func delete(
    _ parent: borrowing FileDescriptor, _ name: EntryName, depth: Int, _ count: inout Count
  ) throws(SystemError) -> Bool {
    guard observer.goesOn else { return false }
    let status = try parent.status(of: name)
    guard status.st_mode & S_IFMT == S_IFDIR else {
      try parent.remove(name)
      count = count + Self.count(of: status)
      observer.deleted(count)
      return true
    }
    let directory = try enter(parent, name, depth: depth)
    // Some file systems skip entries if others are removed meanwhile. So the listing is repeated until it finds none.
    var isEmpty = false
    while !isEmpty {
      isEmpty = true
      while case let entries = try directory.nextEntries(), !entries.isEmpty {
        for entry in entries {
          do throws(SystemError) {
            guard try delete(directory, entry, depth: depth + 1, &count) else { return false }
            isEmpty = false
          } catch  where error.errno == ENOENT {
            // Another process has removed it in the meantime.
          }
        }
      }
      try directory.rewind()
    }
    try parent.removeDirectory(name)
    return true
  }

  private func enter(
    _ parent: borrowing FileDescriptor, _ name: EntryName, depth: Int
  ) throws(SystemError) -> FileDescriptor {
    guard isRecursive else { throw SystemError(errno: EAGAIN, operation: "delete \(url): it has become a directory") }
    guard depth < Self.depthLimit else {
      throw SystemError(
        errno: ENAMETOOLONG, operation: "delete \(url): directories are nested more than \(Self.depthLimit) deep")
    }
    let directory = try parent.openDirectory(name)
    // Another root inside has tasks of its own.
    if try Self.isRoot(directory) {
      throw SystemError(errno: EXDEV, operation: "delete \(url): \(directory.path) is a storage of its own")
    }
    return directory
  }

  private static func isRoot(_ directory: borrowing FileDescriptor) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try directory.openBeneath("\(StorageURL.reserved)/volume", O_RDONLY | O_NONBLOCK)
      return true
    } catch {
      guard [ENOENT, ENOTDIR, ELOOP, EXDEV].contains(error.errno) else { throw error }
      return false
    }
  }

  private static func count(of status: stat) -> Count {
    Count(files: 1, bytes: status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : 0)
  }
}
