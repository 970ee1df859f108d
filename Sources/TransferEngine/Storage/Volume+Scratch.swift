import Glibc
import ReelhaulSystem
import TaskCore

/// The name of a scratch directory, `<task>-<epoch>`: the run that works there.
package struct ScratchName: Hashable, Sendable, LosslessStringConvertible {
  package let task: UniqueID
  package let epoch: Int

  package init(task: UniqueID, epoch: Int) {
    self.task = task
    self.epoch = epoch
  }

  package init?(_ text: String) {
    guard let task = UniqueID(String(text.prefix(36))), let epoch = Int(text.dropFirst(37)) else { return nil }
    self.init(task: task, epoch: epoch)
    guard description == text else { return nil }
  }

  package var description: String { "\(task)-\(epoch)" }
}

extension Volume {
  private static let scratch = "scratch"

  /// Makes the scratch directory of a run and returns its path. Removes the directories of the task's earlier runs,
  /// because nothing needs them any more. Blocks.
  package func makeScratch(_ name: ScratchName) throws(StorageError) -> String {
    try check()
    do throws(SystemError) {
      let own = try root.openBeneath(StorageURL.reserved, O_RDONLY | O_DIRECTORY)
      try Self.make(Self.scratch, in: own)
      let all = try own.openBeneath(Self.scratch, O_RDONLY | O_DIRECTORY)
      for case let other? in try all.entries().map({ ScratchName($0) })
      where other.task == name.task && other.epoch < name.epoch {
        removeTree("\(scratchPath)/\(other)")
      }
      try all.makeDirectory(name.description, mode: 0o700)
    } catch {
      throw StorageError(error, storage: self.name)
    }
    return "\(scratchPath)/\(name)"
  }

  private var scratchPath: String { "\(path)/\(StorageURL.reserved)/\(Self.scratch)" }

  /// A scratch directory that still exists.
  package struct Scratch: Hashable, Sendable {
    package var name: ScratchName
    /// Seconds since 1970.
    package var modifiedAt: Int
  }

  /// All scratch directories, of any run. Blocks.
  package func scratches() throws(StorageError) -> [Scratch] {
    do throws(SystemError) {
      let all = try root.openBeneath("\(StorageURL.reserved)/\(Self.scratch)", O_RDONLY | O_DIRECTORY)
      return try all.entries().compactMap { entry in
        guard let name = ScratchName(entry), let status = try? all.status(of: entry) else { return nil }
        return Scratch(name: name, modifiedAt: Int(status.st_mtim.tv_sec))
      }
    } catch {
      if error.errno == ENOENT { return [] }
      throw StorageError(error, storage: name)
    }
  }

  /// Removes a scratch directory with what it holds. A missing directory is not an error. Blocks.
  package func discard(_ name: ScratchName) throws(StorageError) {
    try check()
    guard removeTree("\(scratchPath)/\(name)") || status(of: name) == nil else {
      throw StorageError(
        .other, "storage \(self.name): the scratch directory \(scratchPath)/\(name) cannot be removed whole")
    }
  }

  /// Removes a scratch directory that has not changed since a time of the file system; false if it has. Blocks.
  package func discard(_ name: ScratchName, unchangedSince time: Int) throws(StorageError) -> Bool {
    guard let status = status(of: name), status.st_mtim.tv_sec <= time else { return false }
    try discard(name)
    return true
  }

  private func status(of scratch: ScratchName) -> stat? {
    guard let all = try? root.openBeneath("\(StorageURL.reserved)/\(Self.scratch)", O_RDONLY | O_DIRECTORY) else {
      return nil
    }
    return try? all.status(of: scratch.description)
  }

  /// Moves a complete file of a scratch directory of this volume to its destination. When it returns, data, name and
  /// directories are on stable storage. If it throws, the file is still in the scratch directory, unless it is at its
  /// destination. Returns the size of the file that is there. `mayWrite` is asked when the data is safe, which takes
  /// long for a large file, right before the move. Blocks.
  package func publish(
    _ file: String, of scratch: ScratchName, to destination: StorageURL, ifExists: IfExists, mark: StagingName,
    while mayWrite: () -> Bool
  ) throws(StorageError) -> Int64 {
    try check()
    let staged: StagingFile
    let bytes: Int64
    let path = file.split(separator: "/").map(String.init)
    do throws(SystemError) {
      let directory = try open(scratch)
      let opened = try directory.openBeneath(file, O_RDWR)
      let status = try opened.status()
      guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(errno: EISDIR, operation: "publish \(file)") }
      bytes = Int64(status.st_size)
      do throws(SystemError) {
        try opened.setAttribute(StagingFile.mark, mark.description)
      } catch  where error.errno == ENOTSUP {
        // Without a mark, the file of an earlier run cannot be recognised.
      }
      // The file becomes a staging file, so that all rules of publishing apply.
      let parent = try directory.openBeneath(Self.parent(of: path), O_RDONLY | O_DIRECTORY)
      try FileDescriptor.rename(from: parent, path[path.count - 1], to: staging, mark.description)
      staged = StagingFile(name: mark, volume: self, file: opened)
    } catch {
      throw StorageError(error, storage: name)
    }
    let published: Published
    do throws(StorageError) {
      try staged.sync()
      guard mayWrite() else { throw StorageError(.stagingMissing, "\(destination) belongs to another run") }
      published = try publish(staged, to: destination, ifExists: ifExists)
    } catch {
      // The run may publish it elsewhere, and its end removes the scratch directory. No run looks among staging files.
      do { try takeBack(mark, to: path, of: scratch) } catch { try? discard(mark) }
      throw error
    }
    guard published == .skipped else { return bytes }
    let there = try open(destination)
    do throws(SystemError) {
      return try there.size()
    } catch {
      throw StorageError(error, storage: name)
    }
  }

  private func takeBack(_ mark: StagingName, to path: [String], of scratch: ScratchName) throws(SystemError) {
    let parent = try open(scratch).openBeneath(Self.parent(of: path), O_RDONLY | O_DIRECTORY)
    try FileDescriptor.rename(from: staging, mark.description, to: parent, path[path.count - 1])
  }

  private func open(_ scratch: ScratchName) throws(SystemError) -> FileDescriptor {
    try root.openBeneath("\(StorageURL.reserved)/\(Self.scratch)/\(scratch)", O_RDONLY | O_DIRECTORY)
  }

  private static func parent(of path: [String]) -> String {
    path.count == 1 ? "." : path.dropLast().joined(separator: "/")
  }
}
