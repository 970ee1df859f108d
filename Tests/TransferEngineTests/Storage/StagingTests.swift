import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

@Suite struct StagingTests {
  let fixture: StorageFixture
  let task = UniqueID.random()
  var volume: Volume { get throws { try fixture.storage.volume("default") } }

  init() throws {
    fixture = try StorageFixture()
  }

  func name(_ generation: Int, _ task: UniqueID? = nil) -> StagingName {
    StagingName(task: task ?? self.task, epoch: 1, generation: generation)
  }

  @Test("a staging name consists of task, epoch and generation")
  func namesAreTaskEpochAndGeneration() throws {
    #expect(StagingName(name(12).description) == name(12))
    #expect(name(12).description == "\(task)-1-12")
    for text in [
      "", "\(task)", "\(task)-", "\(task)-1", "\(task)-1-", "\(task)-1-+1", "\(task)-01-1", "\(task)-1-2-3",
      "\(task)_1-1",
      "\(task)-1-1.tmp", "volume",
    ] {
      #expect(StagingName(text) == nil, "\(text)")
    }
  }

  @Test("another owner continues with the staging file")
  func anotherOwnerGoesOnWithTheFile() throws {
    let first = try fixture.staged("0123456789", task: task)
    try first.reserve(1000)
    try first.sync()
    let second = try volume.adopt(name(1), minimumSize: 10)
    #expect(try second.size == 1000)
    #expect(try second.read(3..<6) == Array("345".utf8))
    try second.truncate(to: 10)
    #expect(try first.size == 10)
  }

  /// No checkpoint names them. The files of other tasks stay.
  @Test("a new staging file removes those of earlier owners")
  func aNewFileReplacesThoseOfEarlierOwners() throws {
    let other = try fixture.staged("another task's")
    _ = try fixture.staged("old", task: task)
    _ = try fixture.staged("newer", task: task, epoch: 2)
    let newest = try fixture.staged("newest", task: task, epoch: 10)
    #expect(try Set(volume.staged().map(\.name)) == [other.name, newest.name])
  }

  /// A worker that was frozen continues where it was. Its file must not replace the present owner's.
  @Test("a late file of a former owner never replaces the present owner's file")
  func aFormerOwnersLateFileIsSeparate() throws {
    let present = try fixture.staged("right", task: task, epoch: 2)
    try fixture.staged("", task: task, epoch: 1).reserve(5)
    #expect(try volume.publish(present, to: fixture.url("a"), ifExists: .fail) == .published)
    #expect(try fixture.contents("a") == "right")
    #expect(
      try volume.adopt(StagingName(task: task, epoch: 1, generation: 1), minimumSize: 5).read(0..<5) == [0, 0, 0, 0, 0])
  }

  @Test("an existing staging file is never opened as a new one")
  func newFilesAreNew() throws {
    let file = try fixture.staged("mine", task: task)
    let error = #expect(throws: StorageError.self) { try volume.create(file.name) }
    #expect(error?.code == .stagingForeign)
    #expect(try file.read(0..<4) == Array("mine".utf8))
  }

  @Test("a staging file that is not the task's is refused")
  func refusesForeignStagingFiles() throws {
    let other = try fixture.staged("another task's", task: .random())
    _ = try fixture.staged("mine", task: task)
    func code(_ body: () throws -> StagingFile) -> StorageError.Code? {
      do { _ = try body() } catch let error as StorageError {
        #expect(error.isVoid)
        return error.code
      } catch {}
      return nil
    }
    #expect(code { try volume.adopt(name(2), minimumSize: 0) } == .stagingMissing)
    #expect(code { try volume.adopt(name(1), minimumSize: 5) } == .stagingShort)
    #expect(rename("\(fixture.staging)/\(other.name)", "\(fixture.staging)/\(name(1))") == 0)
    #expect(code { try volume.adopt(name(1), minimumSize: 4) } == .stagingForeign)
    #expect(symlink("/etc/passwd", "\(fixture.staging)/\(name(3))") == 0)
    #expect(code { try volume.adopt(name(3), minimumSize: 0) } == .stagingForeign)
    #expect(mkdir("\(fixture.staging)/\(name(4))", 0o700) == 0)
    #expect(code { try volume.adopt(name(4), minimumSize: 0) } == .stagingForeign)
    // Even a link to a file with the right mark, such as the one that the task has published.
    let published = try fixture.staged("mine", task: task, epoch: 2)
    let path = "\(fixture.staging)/\(published.name)"
    #expect(rename(path, "\(fixture.root)/film") == 0)
    #expect(symlink("\(fixture.root)/film", path) == 0)
    #expect(code { try volume.adopt(published.name, minimumSize: 0) } == .stagingForeign)
  }

  @Test("staging files are listed and discarded")
  func listsAndDiscards() throws {
    let file = try fixture.staged(String(repeating: "x", count: 10_000), task: task)
    _ = try FileDescriptor.open("\(fixture.staging)/stray", O_WRONLY | O_CREAT)
    #expect(try volume.staged().map(\.name) == [file.name])
    try volume.discard(file.name)
    try volume.discard(file.name)
    #expect(try volume.staged().isEmpty)
  }

  /// Between the sweep's look at the task and its removal of the file the task may be retried.
  @Test("a staging file that is adopted again is not swept")
  func anAdoptedFileIsNotSwept() throws {
    for isTakenUp in [false, true] {
      let file = try fixture.staged("bytes", task: task)
      var times = [timespec](repeating: timespec(tv_sec: time(nil) - 90, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, "\(fixture.staging)/\(file.name)", &times, 0) == 0)
      if isTakenUp { _ = try volume.adopt(file.name, minimumSize: 5) }
      #expect(try volume.discard(file.name, unchangedSince: volume.now() - 60) == !isTakenUp)
      #expect(try volume.staged().map(\.name) == (isTakenUp ? [file.name] : []))
    }
    #expect(try volume.discard(name(9), unchangedSince: volume.now() - 60) == false)
  }

  @Test("a device error makes the staging file unusable for good")
  func aDeviceErrorVoidsTheFileForGood() throws {
    let file = try fixture.staged("bytes", task: task)
    let error = #expect(throws: StorageError.self) {
      try file.attempt { _ throws(SystemError) in throw SystemError(errno: EIO, operation: "fdatasync") }
    }
    #expect(error?.code == .ioError)
    #expect(error?.failure.class == .wait)
    // The device would accept the sync now.
    #expect(throws: StorageError.self) { try file.sync() }
    #expect(throws: StorageError.self) { try file.write("more") }
    #expect(throws: StorageError.self) { try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail) }
    #expect(throws: StorageError.self) { try volume.adopt(file.name, minimumSize: 0) }
  }

  @Test(
    "errors of the file system become failure codes and classes",
    arguments: [
      (ENOSPC, StorageError.Code.diskFull, TaskFailure.Class.wait), (EDQUOT, .diskFull, .wait),
      (EFBIG, .tooLarge, .fail),
      (EROFS, .readOnly, .wait),
      (EACCES, .denied, .wait), (EMFILE, .tooManyFiles, .wait), (EIO, .ioError, .wait), (ESTALE, .volumeGone, .wait),
      (ELOOP, .destinationInvalid, .fail), (EEXIST, .destinationExists, .fail), (EBUSY, .other, .retry),
    ])
  func classifiesErrors(errno: Int32, code: StorageError.Code, class: TaskFailure.Class) {
    let error = StorageError(SystemError(errno: errno, operation: "write a"), storage: "default")
    #expect(error.code == code)
    #expect(error.failure.class == `class`)
    #expect(error.message.hasPrefix("storage default: write a: "))
  }
}
