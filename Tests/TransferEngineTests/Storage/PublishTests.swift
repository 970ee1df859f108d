import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

@Suite struct PublishTests {
  let fixture: StorageFixture
  var storage: Storage { fixture.storage }
  var volume: Volume { get throws { try storage.volume("default") } }

  init() throws {
    fixture = try StorageFixture()
  }

  func publish(_ file: StagingFile, _ path: String, _ ifExists: IfExists = .fail) throws -> Published {
    try file.volume.publish(file, to: fixture.url(path), ifExists: ifExists)
  }

  func code(_ body: () throws -> Published) -> StorageError.Code? {
    let error = #expect(throws: StorageError.self) { _ = try body() }
    return error?.code
  }

  @Test("publishing moves the file and creates its directories")
  func movesTheFileAndMakesItsDirectories() throws {
    let file = try fixture.staged("film")
    #expect(try publish(file, "a/b/film.mp4") == .published)
    #expect(try fixture.contents("a/b/film.mp4") == "film")
    #expect(try volume.staged().isEmpty)
    let again = try fixture.staged("other")
    #expect(try publish(again, "a/b/other.mp4") == .published)
  }

  @Test("an existing file is kept, skipped or replaced")
  func existingFilesAreKeptSkippedOrReplaced() throws {
    _ = try publish(fixture.staged("old"), "a")
    let file = try fixture.staged("new")
    #expect(code { try publish(file, "a", .fail) } == .destinationExists)
    #expect(try fixture.contents("a") == "old")
    #expect(try volume.staged().map(\.name) == [file.name])
    #expect(try publish(file, "a", .skip) == .skipped)
    #expect(try fixture.contents("a") == "old")
    #expect(try volume.staged().isEmpty)
    #expect(try publish(fixture.staged("newest"), "a", .replace) == .published)
    #expect(try fixture.contents("a") == "newest")
  }

  @Test("one of several tasks for the same destination wins")
  func ofManyTasksForOneDestinationOneWins() throws {
    let won = Lock<[String]>([])
    let fixture = self.fixture
    let threads = (0..<12).map { index in
      Thread(name: "publish-\(index)") {
        do {
          let file = try fixture.staged("task \(index)")
          guard try file.volume.publish(file, to: fixture.url("d/a"), ifExists: .fail) == .published else { return }
          won.withLock { $0.append("task \(index)") }
        } catch let error as StorageError where error.code == .destinationExists {
        } catch {
          Issue.record(error)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(try won.withLock { $0 } == [fixture.contents("d/a")])
  }

  @Test("a path cannot leave the root through symbolic links")
  func pathsCannotLeaveTheRoot() throws {
    let outside = "\(fixture.directory.path)/outside"
    #expect(mkdir(outside, 0o755) == 0)
    #expect(symlink(outside, "\(fixture.root)/link") == 0)
    #expect(symlink("\(outside)/x", "\(fixture.root)/file") == 0)
    #expect(code { try publish(fixture.staged("a"), "link/a") } == .destinationInvalid)
    #expect(code { try publish(fixture.staged("a"), "link/new/a") } == .destinationInvalid)
    #expect(code { try publish(fixture.staged("a"), "file") } == .destinationInvalid)
    // The link itself is replaced.
    #expect(try publish(fixture.staged("a"), "file", .replace) == .published)
    #expect(try FileDescriptor.open(outside, O_RDONLY | O_DIRECTORY).entries().isEmpty)
    #expect(throws: StorageError.self) { _ = try volume.open(fixture.url("link/a")) }
  }

  @Test("a file or a directory in the way is an invalid destination")
  func aFileOrADirectoryInTheWayIsToldApart() throws {
    _ = try publish(fixture.staged("file"), "a")
    #expect(code { try publish(fixture.staged("x"), "a/b") } == .destinationInvalid)
    _ = try publish(fixture.staged("x"), "d/x")
    #expect(code { try publish(fixture.staged("x"), "d") } == .destinationInvalid)
    #expect(code { try publish(fixture.staged("x"), "d", .replace) } == .destinationInvalid)
  }

  @Test(
    "an entry that is not a regular file is neither skipped nor replaced", arguments: [S_IFDIR, S_IFIFO, S_IFSOCK],
    IfExists.allCases)
  func otherEntriesAreNeitherSkippedNorReplaced(kind: mode_t, ifExists: IfExists) throws {
    try makeEntry(kind, at: "\(fixture.root)/a")
    let file = try fixture.staged("x")
    let destination = try fixture.url("a")
    #expect(code { try publish(file, "a", ifExists) } == .destinationInvalid)
    #expect(try volume.staged().map(\.name) == [file.name])
    let occupied = #expect(throws: StorageError.self) { _ = try volume.occupant(of: destination, name: file.name) }
    #expect(occupied?.failure.code == .destinationInvalid)
    #expect(occupied?.failure.class == .fail)
    let opened = #expect(throws: StorageError.self) { _ = try volume.open(destination) }
    #expect(opened?.code == .destinationInvalid)
  }

  @Test("another file under the staging name is not published")
  func refusesAnotherFileUnderItsName() throws {
    let file = try fixture.staged("mine")
    let other = try fixture.staged("another task's")
    #expect(rename("\(fixture.staging)/\(other.name)", "\(fixture.staging)/\(file.name)") == 0)
    #expect(code { try publish(file, "a") } == .stagingMissing)
    #expect(try volume.occupant(of: fixture.url("a"), name: file.name) == .nothing)
  }

  /// NFS and some FUSE file systems need a link and then a removal.
  @Test("on a file system without renameat2 the file is linked and the staging name removed")
  func withoutRenameNoReplaceTheFileIsLinked() throws {
    let volume = try linking()
    let file = try volume.create(StagingName(task: .random(), epoch: 1, generation: 1))
    try file.write("mine")
    #expect(try volume.publish(file, to: fixture.url("a"), ifExists: .fail) == .published)
    #expect(try fixture.contents("a") == "mine")
    #expect(try volume.staged().isEmpty)
    let other = try volume.create(StagingName(task: .random(), epoch: 1, generation: 1))
    #expect(code { try volume.publish(other, to: fixture.url("a"), ifExists: .fail) } == .destinationExists)
    #expect(try volume.publish(other, to: fixture.url("a"), ifExists: .skip) == .skipped)
    #expect(try fixture.contents("a") == "mine")
  }

  @Test("a crash between link and removal is finished", arguments: [IfExists.fail, .skip])
  func aCrashBetweenTheLinkAndTheRemovalIsFinished(ifExists: IfExists) throws {
    let volume = try linking()
    let file = try volume.create(StagingName(task: .random(), epoch: 1, generation: 1))
    try file.write("mine")
    #expect(link("\(fixture.staging)/\(file.name)", "\(fixture.root)/a") == 0)
    #expect(try volume.publish(file, to: fixture.url("a"), ifExists: ifExists) == .published)
    #expect(try fixture.contents("a") == "mine")
    #expect(try volume.staged().isEmpty)
  }

  /// The volume of ``fixture``, opened so that it cannot rename without replacing.
  private func linking() throws -> Volume {
    try Volume(name: "default", path: fixture.root, policy: ReservePolicy()) { _, _, _, _ throws(SystemError) in
      throw SystemError(errno: EINVAL, operation: "rename")
    }
  }

  @Test("a task recognises its own published file after a crash")
  func knowsItsOwnFileAfterACrash() throws {
    let file = try fixture.staged("mine")
    let other = try fixture.staged("other")
    let destination = try fixture.url("d/a")
    #expect(try volume.occupant(of: destination, name: file.name) == .nothing)
    _ = try publish(file, "d/a")
    #expect(try volume.occupant(of: destination, name: file.name) == .own)
    #expect(try volume.occupant(of: destination, name: other.name) == .other)
    #expect(try volume.open(destination).size() == 4)
  }
}
