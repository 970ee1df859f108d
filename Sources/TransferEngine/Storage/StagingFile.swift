import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import Synchronization
import TaskCore

/// The file that collects a task's bytes until they are complete, on the volume of its destination.
///
/// Several threads may write and sync it at once, each in its own range. All calls except ``write(_:at:)`` and
/// ``read(_:)`` block for as long as the device takes.
package final class StagingFile: Sendable {
  package let name: StagingName
  package let volume: Volume
  private let descriptor: Lock<Descriptor>
  private let isVoid = Flag()
  /// Counts possible changes of the file. It begins at 1, because an earlier owner may have changed it too.
  private let changes = Atomic(1)
  private let synced = Lock(Synced())

  /// The attribute that marks a file as a task's, wherever it is. Its value is the staging name.
  static let mark = "user.reelhaul"

  private struct Synced {
    /// The count that the last successful sync covered.
    var count = 0
    /// Why a sync has failed. The kernel may have dropped bytes then, which it says once: the next sync would be a success.
    var failure: StorageError?
  }

  /// The file's descriptor, which may be closed while nothing is written or read.
  private struct Descriptor {
    var file: OpenFile?
    /// Since it was closed for the first time.
    var pin: FilePin?
    var wasUsed = false
    var isHeld: Bool
  }

  /// Closes the file when its last user has gone.
  private final class OpenFile: Sendable {
    let descriptor: FileDescriptor

    init(_ descriptor: consuming FileDescriptor) {
      self.descriptor = descriptor
    }
  }

  init(name: StagingName, volume: Volume, file: consuming FileDescriptor) {
    self.name = name
    self.volume = volume
    let isHeld = !volume.closesStagingFiles
    descriptor = Lock(Descriptor(file: OpenFile(file), isHeld: isHeld))
    if !isHeld { volume.openFiles?.opened(self) }
  }

  /// The present size of the file in bytes. After ``reserve(_:)`` it is at least the reserved size.
  package var size: Int64 {
    get throws(StorageError) { try attempt { file throws(SystemError) in try file.size() } }
  }

  /// Its number in the file system.
  var inode: ino_t {
    get throws(StorageError) { try attempt { file throws(SystemError) in try file.status().st_ino } }
  }

  /// Reserves space so that the file can grow to `size` bytes, and makes it that long. `disk_full` if the volume, its
  /// quota or the reserve does not allow it. Does nothing if the file is already that long.
  ///
  /// - Parameter isWritten: Whether bytes are written meanwhile, maybe beyond `size`. Then the file gets no other length
  ///   where the file system allocates no blocks.
  package func reserve(_ size: Int64, isWritten: Bool = false) throws(StorageError) {
    try attempt { [volume, name] file throws(SystemError) in
      try volume.reserve.take(size, for: file, named: name.description, in: volume.staging, isWritten: isWritten)
    }
  }

  /// Whether the file uses more of its volume than everything else there.
  var fillsVolume: Bool {
    guard let own = try? attempt({ file throws(SystemError) in try file.status().st_blocks }),
      case (let free, let total?)? = try? volume.staging.space()
    else {
      return false
    }
    return Int64(own) * 512 > (total - free) / 2
  }

  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
    try attempt { file throws(SystemError) in try file.write(bytes, at: offset) }
    changes.add(1, ordering: .releasing)
  }

  /// Copies `range` of `source` to the same place, while `goesOn` says so.
  func copy(
    _ range: Range<Int64>, from source: borrowing FileDescriptor, while goesOn: () throws(SystemError) -> Bool
  ) throws(StorageError) -> CopyEnd {
    let end = try attempt { file throws(SystemError) in try file.copy(range, from: source, while: goesOn) }
    changes.add(1, ordering: .releasing)
    return end
  }

  /// Makes the empty file share all blocks of `source`; false if that is not possible.
  func clone(_ source: borrowing FileDescriptor) throws(StorageError) -> Bool {
    let isCloned = try attempt { file throws(SystemError) in try file.clone(source) }
    changes.add(1, ordering: .releasing)
    return isCloned
  }

  /// The bytes of `range`; fewer if the file ends before.
  package func read(_ range: Range<Int64>) throws(StorageError) -> [UInt8] {
    try attempt { file throws(SystemError) in try file.read(range) }
  }

  /// Blocks until all earlier writes are on stable storage. Costs nothing if nothing was written. Once it has failed, it
  /// always does: who opens the file anew has the bytes that were recorded before.
  package func sync() throws(StorageError) {
    try synced.withLock { (synced: inout Synced) throws(StorageError) in
      let count = changes.load(ordering: .acquiring)
      if let failure = synced.failure { throw failure }
      guard synced.count != count else { return }
      let begun = Clocks.boottime()
      do throws(StorageError) {
        try attempt { file throws(SystemError) in try file.syncData() }
      } catch {
        synced.failure = error
        throw error
      }
      volume.syncs?.observe(nanoseconds: Clocks.boottime() - begun)
      synced.count = count
    }
  }

  /// Sets the final size, and gives back the space beyond it.
  package func truncate(to size: Int64) throws(StorageError) {
    try attempt { file throws(SystemError) in try file.truncate(to: size) }
    changes.add(1, ordering: .releasing)
  }

  /// Gives back the space that the file has beyond `size` bytes, because its task waits. Not on a file system of another
  /// machine: a call that hangs there may take effect when the next owner has written beyond.
  package func giveBack(beyond size: Int64) throws(StorageError) {
    if !volume.isRemote { try truncate(to: size) }
  }

  /// Runs a call on the file. A device error makes the file unusable for good: after a failed fsync the kernel may
  /// drop the pages and report success the next time, so a second try proves nothing.
  func attempt<Result>(
    _ body: (borrowing FileDescriptor) throws(SystemError) -> Result
  ) throws(StorageError) -> Result {
    guard !isVoid.isSet else {
      throw StorageError(
        .ioError, "storage \(volume.name): the staging file \(name) cannot be used after a device error")
    }
    do throws(SystemError) {
      return try body(opened().descriptor)
    } catch {
      let error =
        error.errno == ENOENT
        ? StorageError(.stagingMissing, "storage \(volume.name): the staging file \(name) is gone")
        : StorageError(error, storage: volume.name)
      if error.code == .ioError {
        isVoid.set()
        // Discarded, so that no other owner adopts it.
        try? volume.discard(name)
      }
      throw error
    }
  }
}

// The descriptor.
extension StagingFile {
  /// Keeps it open until the end: the file gets another name.
  func holdOpen() throws(StorageError) {
    try attempt { _ throws(SystemError) in }
    let mustOpen = descriptor.withLock { descriptor in
      descriptor.isHeld = true
      return descriptor.file == nil
    }
    // It was closed in between.
    if mustOpen { try attempt { _ throws(SystemError) in } }
  }

  /// Closes the descriptor, unless the file is held open. The next use opens it again.
  func close() {
    descriptor.withLock { descriptor in
      guard !descriptor.isHeld, let open = descriptor.file else { return }
      do throws(SystemError) {
        // Unsynced bytes stay safe: a sync over another descriptor tells if they could not be written, as long as the
        // kernel remembers the file.
        if descriptor.pin == nil { descriptor.pin = try FilePin(open.descriptor) }
        descriptor.file = nil
      } catch {
        descriptor.isHeld = true
      }
    }
  }

  /// Whether it was used since the last call.
  func takeUse() -> Bool {
    descriptor.withLock { descriptor in
      defer { descriptor.wasUsed = false }
      return descriptor.wasUsed
    }
  }

  /// Whether it has a descriptor now.
  var isOpen: Bool { descriptor.withLock { $0.file != nil } }

  private func opened() throws(SystemError) -> OpenFile {
    let (file, isNew) = try descriptor.withLock { descriptor throws(SystemError) in
      descriptor.wasUsed = true
      if let file = descriptor.file { return (file, false) }
      let file = OpenFile(try volume.staging.openBeneath(name.description, O_RDWR))
      guard try descriptor.pin?.isOf(file.descriptor) == true else {
        throw SystemError(errno: ENOENT, operation: "open \(name) again")
      }
      descriptor.file = file
      descriptor.wasUsed = false
      return (file, !descriptor.isHeld)
    }
    if isNew { volume.openFiles?.opened(self) }
    return file
  }
}
