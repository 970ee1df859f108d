import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

@Suite struct VolumeTests {
  let fixture: StorageFixture
  var storage: Storage { fixture.storage }

  init() throws {
    fixture = try StorageFixture()
  }

  @Test("marking a root again keeps its volume id")
  func initialisingAgainKeepsTheVolume() throws {
    let id = try #require(storage.volumes["default"])
    try storage.initialise()
    #expect(Storage(roots: storage.roots).volumes == ["default": id])
  }

  @Test("nothing is written to a root that is marked already, because it may be full or read-only")
  func writesNothingToAMarkedRoot() throws {
    let path = try #require(storage.roots["default"])
    for directory in [path, "\(path)/.reelhaul"] {
      var times = [timespec](repeating: timespec(tv_sec: 1_000_000, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, directory, &times, 0) == 0)
    }
    #expect(try storage.initialise().isEmpty)
    for directory in [path, "\(path)/.reelhaul"] {
      let status = try FileDescriptor.open(directory, O_RDONLY | O_DIRECTORY).status()
      #expect(status.st_mtim.tv_sec == 1_000_000, "\(directory)")
    }
  }

  @Test("a volume without its staging directory is made whole, and keeps its mark")
  func makesAVolumeWhole() throws {
    let path = try #require(storage.roots["default"])
    let id = try #require(storage.volumes["default"])
    #expect(rmdir("\(path)/.reelhaul/staging") == 0)
    #expect(throws: StorageError.self) { try Storage(roots: storage.roots).volume("default") }
    #expect(try storage.initialise().isEmpty)
    #expect(Storage(roots: storage.roots).volumes == ["default": id])
  }

  @Test("one of several processes that mark a root wins")
  func ofManyThatInitialiseOneRootOneWins() throws {
    let path = "\(fixture.directory.path)/new"
    let ids = Lock<Set<UniqueID>>([])
    let winners = Lock(0)
    let threads = (0..<8).map { index in
      Thread(name: "init-\(index)") {
        let storage = Storage(roots: ["a": path])
        if (try? storage.initialise()) == ["a"] { winners.withLock { $0 += 1 } }
        ids.withLock { _ = $0.insert(storage.volumes["a"] ?? UniqueID(high: 0, low: UInt64(index))) }
      }
    }
    for thread in threads { thread.join() }
    #expect(ids.withLock { $0.count } == 1)
    #expect(winners.withLock { $0 } == 1, "one of them reports that it has marked the root")
    let left = try FileDescriptor.open("\(path)/.reelhaul", O_RDONLY | O_DIRECTORY).entries()
    #expect(Set(left).isSubset(of: ["volume", "staging", "reserve"]))
  }

  @Test("a root whose file system cannot rename without replacing, such as NFS, is marked, once")
  func marksWithoutRename() throws {
    let path = "\(fixture.directory.path)/new"
    func mark() throws -> Bool {
      try Volume.initialise(name: "a", path: path) { _, _, _, _ throws(SystemError) in
        throw SystemError(errno: EINVAL, operation: "rename")
      }
    }
    #expect(try mark())
    let id = try #require(Storage(roots: ["a": path]).volumes["a"])
    #expect(try !mark())
    #expect(Storage(roots: ["a": path]).volumes["a"] == id)
    let left = try FileDescriptor.open("\(path)/.reelhaul", O_RDONLY | O_DIRECTORY).entries()
    #expect(Set(left).isSubset(of: ["volume", "staging", "reserve"]))
  }

  @Test("a missing root lets the task wait")
  func waitsForAMissingRoot() throws {
    let storage = Storage(roots: ["default": "\(fixture.directory.path)/nowhere"])
    let error = #expect(throws: StorageError.self) { try storage.volume("default") }
    #expect(error?.code == .rootMissing)
    #expect(error?.failure.class == .wait)
    #expect(storage.volumes.isEmpty)
    #expect(throws: StorageError.self) { try storage.volume("other") }
  }

  @Test("a directory without a mark lets the task wait")
  func waitsForADirectoryThatIsNoVolume() throws {
    let storage = Storage(roots: ["default": fixture.directory.path])
    let error = #expect(throws: StorageError.self) { try storage.volume("default") }
    #expect(error?.code == .notInitialised)
    #expect(error?.failure.class == .wait)
  }

  @Test("a root that is replaced by an empty one is noticed, and its return too")
  func noticesThatTheRootWasRemountedEmptyAndThatItIsBack() throws {
    let file = try fixture.staged("bytes")
    let away = "\(fixture.directory.path)/away"
    #expect(rename(fixture.root, away) == 0)
    #expect(mkdir(fixture.root, 0o755) == 0)
    var error = #expect(throws: StorageError.self) { try fixture.staged("more") }
    #expect(error?.code == .notInitialised)
    error = #expect(throws: StorageError.self) {
      try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail)
    }
    #expect(error?.code == .volumeGone)
    #expect(error?.failure.class == .wait)
    #expect(rmdir(fixture.root) == 0)
    #expect(rename(away, fixture.root) == 0)
    #expect(try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail) == .published)
    #expect(try fixture.contents("a") == "bytes")
  }

  @Test("a root that is mounted again is noticed", .enabled(if: BindMount.isPossible)) func noticesAnotherMount() throws
  {
    let path = "\(fixture.directory.path)/mounted"
    #expect(mkdir(path, 0o755) == 0)
    let storage = Storage(roots: ["default": path])
    var mount: BindMount? = try BindMount(of: fixture.root, at: path)
    let first = try storage.volume("default")
    #expect(first.isMounted)
    mount = nil
    #expect(!first.isMounted)
    mount = try BindMount(of: fixture.root, at: path)
    #expect(!first.isMounted, "its descriptors are on the mount before")
    #expect(try storage.volume("default").isMounted)
    withExtendedLifetime(mount) {}
  }

  @Test("a new mark in the same place is another volume")
  func noticesThatTheVolumeWasMarkedAnewInItsPlace() throws {
    let marker = "\(fixture.root)/.reelhaul/volume"
    let other = UniqueID.random()
    for isAnew in [false, true] {
      let file = try fixture.staged("bytes")
      if isAnew { #expect(unlink(marker) == 0) }
      // The first time the marker changes in the same file, the second time in a new file.
      let written = try FileDescriptor.open(marker, O_WRONLY | O_CREAT)
      try written.write("\(other)\n", at: 0)
      var times = [timespec](repeating: timespec(tv_sec: isAnew ? 2 : 1, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, marker, &times, 0) == 0)
      let error = #expect(throws: StorageError.self) {
        try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail)
      }
      #expect(error?.code == .volumeGone)
      #expect(try storage.volume("default").id == other)
    }
  }

  @Test("a staging directory that was created again is used")
  func aStagingDirectoryThatWasMadeAnewIsUsed() throws {
    _ = try fixture.staged("bytes")
    #expect(rename(fixture.staging, "\(fixture.directory.path)/away") == 0)
    let error = #expect(throws: StorageError.self) { try fixture.staged("more") }
    #expect(error?.failure.class == .wait)
    try storage.initialise()
    _ = try fixture.staged("more")
    #expect(try storage.volume("default").staged().count == 1)
  }

  @Test("a staging file is adopted only on the checkpoint's volume")
  func adoptsOnlyOnTheVolumeOfTheCheckpoint() throws {
    let task = UniqueID.random()
    let file = try fixture.staged("bytes", task: task)
    var checkpoint = DownloadCheckpoint(
      generation: 1, identity: SourceIdentity(finalURL: "http://a/b", size: 5), volume: file.volume.id,
      stagingName: file.name.description)
    checkpoint.done.insert(0..<5)
    #expect(
      try storage.adopt(for: fixture.url("x"), task: task, checkpoint: checkpoint).read(0..<9) == Array("bytes".utf8))
    checkpoint.volume = .random()
    let error = #expect(throws: StorageError.self) {
      try storage.adopt(for: fixture.url("x"), task: task, checkpoint: checkpoint)
    }
    #expect(error?.code == .volumeGone)
  }

  @Test("a read-only root lets the task wait", .enabled(if: SmallDisk.isPossible)) func waitsForAReadOnlyRoot() throws {
    let disk = try SmallDisk(mebibytes: 1)
    let storage = Storage(roots: ["default": disk.path])
    try storage.initialise()
    try disk.makeReadOnly()
    let error = #expect(throws: StorageError.self) { try storage.volume("default") }
    #expect(error?.code == .readOnly)
    #expect(error?.failure.class == .wait)
  }

  @Test("a volume that is mounted over another is noticed", .enabled(if: SmallDisk.isPossible))
  func aVolumeMountedOverAnotherIsAnother() throws {
    let file = try fixture.staged("bytes")
    try withExtendedLifetime(SmallDisk(mebibytes: 1, at: fixture.root)) { _ in
      var error = #expect(throws: StorageError.self) { try storage.usable("default") }
      #expect(error?.code == .notInitialised)
      try storage.initialise()
      #expect(try storage.usable("default").id != file.volume.id)
      error = #expect(throws: StorageError.self) {
        try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail)
      }
      #expect(error?.code == .volumeGone)
    }
    #expect(try storage.usable("default").id == file.volume.id)
    #expect(try file.volume.publish(file, to: fixture.url("a"), ifExists: .fail) == .published)
  }

  @Test("the list of storage roots is parsed")
  func readsTheListOfRoots() throws {
    #expect(try Storage.roots(parsing: "") == [:])
    #expect(try Storage.roots(parsing: "a=/x,b=/y=z") == ["a": "/x", "b": "/y=z"])
    for text in ["a", "a=x", "=/x", "a=/x,a=/y", "a/b=/x", ".a=/x"] {
      #expect(throws: InvalidStorageRoot.self) { try Storage.roots(parsing: text) }
    }
  }
}
