import Glibc
import ReelhaulSystem
import TaskCore

extension Volume {
  /// An unfinished staging file.
  package struct Staged: Hashable, Sendable {
    package var name: StagingName
    /// Seconds since 1970.
    package var modifiedAt: Int
  }

  /// A new, empty staging file. Files of the task's earlier owners are removed, because this owner does not continue
  /// with them.
  ///
  /// Its entry in the directory is not synced. If a crash removes it, the next owner starts a new generation.
  package func create(_ name: StagingName) throws(StorageError) -> StagingFile {
    try check()
    do throws(SystemError) {
      if name.epoch > 1 {
        for case let entry? in try staging.entries().map({ StagingName($0) })
        where entry.task == name.task && entry.epoch < name.epoch {
          try? staging.remove(entry.description)
        }
      }
      let file = try staging.openBeneath(name.description, O_RDWR | O_CREAT | O_EXCL)
      do throws(SystemError) {
        try file.setAttribute(StagingFile.mark, name.description)
      } catch  where error.errno == ENOTSUP {
        // On a file system without extended attributes the file is identified by its name, its size and the CRC of its
        // last range.
      }
      return StagingFile(name: name, volume: self, file: file)
    } catch {
      switch error.errno {
      case ENOENT: throw StorageError(.volumeGone, "storage \(self.name): the staging directory of \(path) is gone")
      // In a restored fleet, of a run that its database knows nothing of: the next one has another name.
      case EEXIST: throw StorageError(.stagingForeign, "storage \(self.name): the staging file \(name) already exists")
      default: throw StorageError(error, storage: self.name)
      }
    }
  }

  /// The staging file that another owner of the task left, if it belongs to the task and has at least `minimumSize`
  /// bytes. Its time is set to now, so that no sweep removes it as forgotten. `staging_missing`, `staging_foreign` and
  /// `staging_short` require a new generation.
  package func adopt(_ name: StagingName, minimumSize: Int64) throws(StorageError) -> StagingFile {
    try check()
    do throws(SystemError) {
      let file = try staging.openBeneath(name.description, O_RDWR)
      let status = try file.status()
      guard status.st_mode & S_IFMT == S_IFREG, try isMarked(file, name) ?? true else {
        throw SystemError(errno: ELOOP, operation: "adopt")
      }
      guard Int64(status.st_size) >= minimumSize else {
        throw SystemError(errno: ERANGE, operation: "adopt")
      }
      try file.touch()
      return StagingFile(name: name, volume: self, file: file)
    } catch {
      let file = "storage \(self.name): the staging file \(name)"
      switch error.errno {
      case ENOENT: throw StorageError(.stagingMissing, "\(file) is gone")
      case ELOOP, EISDIR: throw StorageError(.stagingForeign, "\(file) is not this task's")
      case ERANGE: throw StorageError(.stagingShort, "\(file) is shorter than \(minimumSize) bytes")
      default: throw StorageError(error, storage: self.name)
      }
    }
  }

  /// Removes a staging file. A missing file is not an error.
  package func discard(_ name: StagingName) throws(StorageError) {
    do throws(SystemError) {
      try staging.remove(name.description)
    } catch {
      if error.errno != ENOENT { throw StorageError(error, storage: self.name) }
    }
  }

  /// The time of the file system, in seconds, which may have another clock than this machine.
  package func now() throws(StorageError) -> Int {
    do throws(SystemError) {
      try staging.touch()
      return Int(try staging.status().st_mtim.tv_sec)
    } catch  where !isRemote && (error.errno == ENOSPC || error.errno == EDQUOT) {
      // Some file systems need space for a time.
      return Int(Clocks.realtimeMilliseconds() / 1000)
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Removes a staging file that has not changed since a time of the file system; false if it has.
  package func discard(_ name: StagingName, unchangedSince time: Int) throws(StorageError) -> Bool {
    guard let status = try? staging.status(of: name.description), status.st_mtim.tv_sec <= time else { return false }
    try discard(name)
    return true
  }

  /// All staging files of all tasks. A file that no live task names can be discarded.
  package func staged() throws(StorageError) -> [Staged] {
    do throws(SystemError) {
      var found: [Staged] = []
      for entry in try staging.entries() {
        guard let name = StagingName(entry), let status = try? staging.status(of: entry) else { continue }
        found.append(Staged(name: name, modifiedAt: Int(status.st_mtim.tv_sec)))
      }
      return found
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  /// Whether `file` has the mark of `name`; nil if the file system has no extended attributes.
  func isMarked(_ file: borrowing FileDescriptor, _ name: StagingName) throws(SystemError) -> Bool? {
    do throws(SystemError) {
      return try file.attribute(StagingFile.mark) == name.description
    } catch  where error.errno == ENOTSUP {
      return nil
    }
  }
}
