import Glibc
import ReelhaulSystem
import TaskCore

/// The result of publishing.
package enum Published: Hashable, Sendable {
  case published
  /// The destination existed, and the task asked to skip it. The staging file is discarded.
  case skipped
}

/// The file at a destination.
package enum Occupant: Hashable, Sendable {
  case nothing
  /// The file that this task and generation published.
  case own
  /// Something else.
  case other
  /// A file on a file system without extended attributes. Only its bytes show whether it is this task's.
  case unknown
}

extension Volume {
  /// Moves the complete `file` to its destination. When it returns, data, name and directories are on stable storage.
  ///
  /// If two tasks publish to one destination, one of them finds an existing file. A file that a run of the same task has
  /// published is replaced, because the end of that run was not recorded. To repeat the call after a crash, when the file
  /// may already have been moved, use ``occupant(of:name:)`` first.
  package func publish(
    _ file: StagingFile, to destination: StorageURL, ifExists: IfExists
  ) throws(StorageError) -> Published {
    try check()
    // If the destination is a symbolic link, the link itself is replaced.
    _ = try hasFile(at: destination, orLink: ifExists == .replace)
    try file.sync()
    try file.holdOpen()
    let inode = try file.inode
    let staged = file.name.description
    do throws(SystemError) {
      let parent = try openParent(of: destination)
      // Otherwise another file with the name of ours would be published.
      guard try staging.status(of: staged).st_ino == inode else {
        throw SystemError(errno: ENOENT, operation: "publish \(staged)")
      }
      switch ifExists {
      case .replace: try FileDescriptor.rename(from: staging, staged, to: parent, destination.name)
      case .fail, .skip: try moveNoReplace(staged, to: parent, destination.name)
      }
      try directories.sync(parent)
      return .published
    } catch {
      switch error.errno {
      case EEXIST where ifExists == .skip:
        try discard(file.name)
        return .skipped
      case EEXIST:
        guard try isPublished(at: destination, by: file.name.task) else {
          throw StorageError(.destinationExists, "\(destination) already exists")
        }
        return try publish(file, to: destination, ifExists: .replace)
      case ENOENT: throw StorageError(.stagingMissing, "storage \(name): the staging file \(staged) is gone")
      default: throw StorageError(error, storage: name)
      }
    }
  }

  /// Makes the name of a file at `destination` durable: the process that renamed it may have died before it did so.
  /// Blocks.
  package func syncName(of destination: StorageURL) throws(StorageError) {
    do throws(SystemError) {
      try directories.sync(openParent(of: destination))
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// The file at `destination`, from the view of the owner of the staging file `name`.
  package func occupant(of destination: StorageURL, name: StagingName) throws(StorageError) -> Occupant {
    try check()
    guard try hasFile(at: destination) else { return .nothing }
    do throws(SystemError) {
      let file = try root.openBeneath(destination.path, O_RDONLY | O_NONBLOCK)
      switch try isMarked(file, name) {
      case .some(let isOwn): return isOwn ? .own : .other
      case .none: return .unknown
      }
    } catch {
      if error.errno == ENOENT { return .nothing }
      throw StorageError(error, storage: self.name)
    }
  }

  /// Whether the file at `destination` has a mark of `task`.
  func isPublished(at destination: StorageURL, by task: UniqueID) throws(StorageError) -> Bool {
    do throws(SystemError) {
      let file = try root.openBeneath(destination.path, O_RDONLY | O_NONBLOCK)
      return try StagingName(file.attribute(StagingFile.mark) ?? "")?.task == task
    } catch {
      // What cannot be looked at for a lack of the machine is nobody's yet.
      guard [EMFILE, ENFILE, ENOMEM].contains(error.errno) else { return false }
      throw StorageError(error, storage: name)
    }
  }

  /// Opens the published file for reading.
  package func open(_ source: StorageURL) throws(StorageError) -> FileDescriptor {
    try check()
    _ = try hasFile(at: source)
    do throws(SystemError) {
      return try root.openBeneath(source.path, O_RDONLY | O_NONBLOCK)
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Whether a file exists at `url`. Throws `destinationInvalid` if it is not a regular file: a directory, a FIFO, a
  /// socket or a device. It is not opened for this check, because opening may block or have effects.
  func hasFile(at url: StorageURL, orLink: Bool = false) throws(StorageError) -> Bool {
    let kind: mode_t
    do throws(SystemError) {
      kind = try parent(of: url).status(of: url.name).st_mode & S_IFMT
    } catch {
      if error.errno == ENOENT { return false }
      throw StorageError(error, storage: name)
    }
    guard kind == S_IFREG || orLink && kind == S_IFLNK else {
      throw StorageError(.destinationInvalid, "\(url) is not a regular file")
    }
    return true
  }

  /// Moves a file from `staging`.
  func moveNoReplace(
    _ staged: String, to parent: borrowing FileDescriptor, _ name: String
  ) throws(SystemError) {
    try Self.moveNoReplace(from: staging, staged, to: parent, name, by: renameNoReplace)
  }

  /// renameat2 with RENAME_NOREPLACE, or link and unlink if the file system lacks it (NFS, some FUSE).
  static func moveNoReplace(
    from directory: borrowing FileDescriptor, _ old: String, to parent: borrowing FileDescriptor, _ name: String,
    by renameNoReplace: RenameNoReplace
  ) throws(SystemError) {
    do throws(SystemError) {
      try renameNoReplace(directory, old, parent, name)
    } catch  where error.errno == EINVAL || error.errno == ENOSYS || error.errno == EOPNOTSUPP {
      do throws(SystemError) {
        try FileDescriptor.link(from: directory, old, to: parent, name)
      } catch  where error.errno == EEXIST {
        // A crash between link and unlink leaves the file with both names.
        let (own, other) = (try directory.status(of: old), try parent.status(of: name))
        guard own.st_dev == other.st_dev, own.st_ino == other.st_ino else { throw error }
      }
      try directory.remove(old)
    }
  }

  /// Opens the directory in which `url` lies. Unless it `crossesMounts`, EXDEV if that is on another mount.
  func parent(of url: StorageURL, crossesMounts: Bool = true) throws(SystemError) -> FileDescriptor {
    let directories = url.names.dropLast()
    return try root.openBeneath(
      directories.isEmpty ? "." : directories.joined(separator: "/"), O_RDONLY | O_DIRECTORY,
      crossesMounts: crossesMounts)
  }

  /// Throws if no file can be moved to `destination`, because something else is mounted there. Blocks.
  func checkParent(of destination: StorageURL) throws(StorageError) {
    do throws(SystemError) {
      let parent = try parent(of: destination, crossesMounts: false)
      // A subvolume of Btrfs is no mount, and still nothing can be moved there.
      guard try parent.status().st_dev == staging.status().st_dev else {
        throw SystemError(errno: EXDEV, operation: "open the directory of \(destination)")
      }
    } catch {
      if error.errno != ENOENT { throw StorageError(error, storage: name) }
    }
  }

  /// Opens the directory of `destination`, and creates missing directories durably.
  private func openParent(of destination: StorageURL) throws(SystemError) -> FileDescriptor {
    do throws(SystemError) {
      return try self.parent(of: destination)
    } catch  where error.errno == ENOENT {
    }
    var parent = try root.openBeneath(".", O_RDONLY | O_DIRECTORY)
    for name in destination.names.dropLast() {
      do throws(SystemError) {
        try parent.makeDirectory(name)
      } catch  where error.errno == EEXIST {
      }
      // Also if another process created it, because its sync may still be to come.
      try self.directories.sync(parent)
      let next = try parent.openBeneath(name, O_RDONLY | O_DIRECTORY)
      parent = next
    }
    return parent
  }

  /// The file at `destination` if a run of `task` has published it, and it is as expected. Reads the whole file. Blocks.
  package func published(
    at destination: StorageURL, by task: UniqueID, expect: Expectation, while goesOn: () -> Bool
  ) throws(StorageError) -> (bytes: Int64, sha256: [UInt8])? {
    try check()
    guard try isPublished(at: destination, by: task) else { return nil }
    let file = try open(destination)
    do throws(SystemError) {
      let bytes = Int64(try file.status().st_size)
      let digests = try FileDigests(of: file, withMD5: expect.md5 != nil) { _ in goesOn() }
      guard expect.bytes ?? bytes == bytes, DigestMismatch(expect, digests) == nil else { return nil }
      return (bytes, digests.sha256)
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Deletes the file at `destination` if one of `tasks` published it; returns whether it did. Any other file stays. A
  /// file on a file system without extended attributes stays too, because it has no mark that shows its task. Blocks.
  package func removePublished(at destination: StorageURL, by tasks: [UniqueID]) throws(StorageError) -> Bool {
    try check()
    do throws(StorageError) {
      guard try hasFile(at: destination) else { return false }
    } catch  where error.code == .destinationInvalid {
      // A directory, a link or a FIFO, or a path through one: no task publishes these.
      return false
    }
    do throws(SystemError) {
      let parent = try self.parent(of: destination)
      let file = try parent.openBeneath(destination.name, O_RDONLY | O_NONBLOCK)
      guard let mark = try file.attribute(StagingFile.mark).flatMap(StagingName.init), tasks.contains(mark.task),
        try file.status().st_ino == parent.status(of: destination.name).st_ino
      else { return false }
      // Another file may take its name between any two calls: what is moved aside is compared before it goes.
      do throws(SystemError) {
        try FileDescriptor.rename(from: parent, destination.name, to: staging, mark.description)
        guard try file.status().st_ino == staging.status(of: mark.description).st_ino else {
          try moveNoReplace(mark.description, to: parent, destination.name)
          return false
        }
        try staging.remove(mark.description)
      } catch  where error.errno == EXDEV {
        try parent.remove(destination.name)
      }
      try self.directories.sync(parent)
      return true
    } catch {
      switch error.errno {
      case ENOENT, ELOOP, ENOTDIR, ENOTSUP: return false
      default: throw StorageError(error, storage: name)
      }
    }
  }
}
