import Foundation
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

@Suite struct DeletionTests {
  let fixture: StorageFixture

  init() throws {
    fixture = try StorageFixture()
  }

  private func deletion(
    _ path: String, isRecursive: Bool = true, _ observer: DeletionObserver = DeletionObserver()
  ) throws -> Deletion {
    try Deletion(
      fixture.url(path), on: fixture.storage.volume("default"), isRecursive: isRecursive, observer: observer)
  }

  private func make(_ path: String, _ text: String = "film") throws {
    let file = try FileDescriptor.open("\(fixture.root)/\(path)", O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(text, at: 0)
  }

  private func makeDirectory(_ path: String) throws {
    try ReelhaulSystem.makeDirectories("\(fixture.root)/\(path)")
  }

  private func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat("\(fixture.root)/\(path)", &status) == 0
  }

  private func code(_ body: () throws -> Void) -> StorageError.Code? {
    let error = #expect(throws: StorageError.self) { try body() }
    return error?.code
  }

  private func refuses(_ deletion: Deletion, _ class: TaskFailure.Class, _ text: String) {
    for call in [{ _ = try deletion.survey() }, { _ = try deletion.run() }] {
      let error = #expect(throws: StorageError.self) { try call() }
      #expect(error?.failure.class == `class` && error?.message.contains(text) == true)
    }
  }

  @Test("sizes that add up to more than any disk holds do not overflow")
  func sumsSaturate() {
    let sum = Deletion.Count(files: 1, bytes: .max) + Deletion.Count(files: 1, bytes: .max)
    #expect(sum == Deletion.Count(files: 2, bytes: .max))
  }

  @Test("a file is deleted and counted")
  func file() throws {
    try makeDirectory("a")
    try make("a/film.mp4", "twelve bytes")
    let observer = DeletionObserver()
    let deletion = try deletion("a/film.mp4", observer)
    guard case .file(let version) = try deletion.look() else { throw Unexpected() }
    #expect(version.size == 12)
    #expect(try deletion.survey() == .init(files: 1, bytes: 12))
    #expect(try deletion.run())
    #expect(observer.count == .init(files: 1, bytes: 12))
    #expect(!exists("a/film.mp4") && exists("a"))
    #expect(try deletion.look() == .absent)
  }

  @Test("a deletion is on stable storage when it returns, also one that finds nothing left")
  func durable() async throws {
    try makeDirectory("a/b")
    try make("a/b/film.mp4")
    let deletion = try deletion("a/b")
    let steps = try await DiskWatch.run(below: fixture.root) { disk in
      let isDone = try deletion.run()
      #expect(isDone)
      let first = disk.steps
      let isDoneAgain = try deletion.run()
      #expect(isDoneAgain)
      // What has the name since stays.
      try make("a/b")
      try deletion.sync()
      return [first, disk.steps]
    }
    #expect(steps.map { $0.count { $0 == .synced("a") } } == [1, 3])
    #expect(exists("a/b"))
  }

  @Test("deleting a missing file succeeds", arguments: ["film.mp4", "a/film.mp4", "a/b/c/film.mp4"])
  func absent(path: String) throws {
    let observer = DeletionObserver()
    let deletion = try deletion(path, observer)
    #expect(try deletion.look() == .absent)
    #expect(try deletion.survey() == .init())
    #expect(try deletion.run())
    #expect(observer.count == .init())
    #expect(!exists("a"), "the call creates nothing")
  }

  @Test("a directory is deleted with everything in it, also links and FIFOs; the target of a link stays")
  func directory() throws {
    try makeDirectory("talks/deep/er")
    try makeDirectory("talks/empty")
    try makeDirectory("other")
    try make("other/stays")
    try make("talks/one", "1")
    try make("talks/deep/er/two", "22")
    let outside = try TemporaryDirectory()
    try FileDescriptor.open("\(outside.path)/stays", O_WRONLY | O_CREAT).write("here", at: 0)
    for (target, link) in [(outside.path, "out"), ("../other", "in"), ("\(outside.path)/stays", "file"), ("no", "no")] {
      #expect(symlink(target, "\(fixture.root)/talks/\(link)") == 0)
    }
    try makeEntry(S_IFIFO, at: "\(fixture.root)/talks/deep/pipe")
    try makeEntry(S_IFSOCK, at: "\(fixture.root)/talks/deep/socket")
    let strange: [CChar] = Array("\(fixture.root)/talks/".utf8CString.dropLast()) + [-1, -2, 10, 0]
    let descriptor = open(strange, O_WRONLY | O_CREAT, 0o600)
    #expect(descriptor >= 0 && Glibc.write(descriptor, "333", 3) == 3)
    close(descriptor)

    let observer = DeletionObserver()
    let deletion = try deletion("talks", observer)
    let all = Deletion.Count(files: 9, bytes: 6)
    #expect(try deletion.look() == .directory)
    #expect(try deletion.survey() == all)
    #expect(try deletion.run())
    #expect(observer.count == all)
    #expect(!exists("talks") && exists("other/stays"))
    #expect(access("\(outside.path)/stays", F_OK) == 0)
  }

  @Test("a directory with thousands of entries is stopped in the middle, and the next run deletes the rest")
  func stopAndGoOn() throws {
    try makeDirectory("many/nested")
    let count = 9000
    for number in 0..<count { try make(number % 3 == 0 ? "many/nested/\(number)" : "many/\(number)", "x") }
    let first = DeletionObserver(stopAfter: 5000)
    #expect(try !deletion("many", first).run())
    #expect(first.count == .init(files: 5000, bytes: 5000))
    let second = DeletionObserver()
    #expect(try deletion("many", second).survey() == .init(files: 4000, bytes: 4000))
    #expect(try deletion("many", second).run())
    #expect((first.count + second.count).files == Int64(count))
    #expect(!exists("many"))
  }

  @Test("nothing is deleted if the observer forbids it")
  func stoppedBefore() throws {
    try make("film.mp4")
    let deletion = try deletion("film.mp4", DeletionObserver(stopAfter: 0))
    guard case .file(let version) = try deletion.look() else { throw Unexpected() }
    #expect(try deletion.survey() == nil)
    #expect(try !deletion.run())
    #expect(try !deletion.runExactly(version, aside: aside))
    #expect(exists("film.mp4"))
  }

  @Test("a symbolic link is deleted itself, and what it names stays")
  func link() throws {
    try makeDirectory("target")
    try make("target/film.mp4")
    #expect(symlink("target", "\(fixture.root)/link") == 0)
    let deletion = try deletion("link")
    #expect(try deletion.look() == .special)
    #expect(try deletion.run())
    #expect(!exists("link") && exists("target/film.mp4"))
  }

  @Test("a path through a symbolic link is refused")
  func linkedParent() throws {
    try makeDirectory("target")
    try make("target/film.mp4")
    #expect(symlink("target", "\(fixture.root)/link") == 0)
    let deletion = try deletion("link/film.mp4")
    for call in [{ _ = try deletion.look() }, { _ = try deletion.survey() }, { _ = try deletion.run() }] {
      #expect(code(call) == .destinationInvalid)
    }
    #expect(exists("target/film.mp4"))
  }

  private let aside = StagingName(task: .random(), epoch: 1, generation: 0)

  @Test("the verified file is deleted exactly")
  func exactly() async throws {
    try make("film.mp4")
    let observer = DeletionObserver()
    let deletion = try deletion("film.mp4", observer)
    guard case .file(let version) = try deletion.look() else { throw Unexpected() }
    let steps = try await DiskWatch.run(below: fixture.root) { disk in
      let isDone = try deletion.runExactly(version, aside: aside)
      #expect(isDone)
      return disk.steps
    }
    #expect(steps.last == .synced(""), "it is on stable storage: \(steps)")
    #expect(!exists("film.mp4") && observer.count == .init(files: 1, bytes: 4))
    #expect(try fixture.storage.volume("default").staged().isEmpty)
    #expect(try !deletion.runExactly(version, aside: aside), "it is gone")
  }

  enum Replacement: CaseIterable { case renamed, removedAndMade, written }

  @Test("a file that was replaced or changed while it was verified stays", arguments: Replacement.allCases)
  func replaced(by replacement: Replacement) throws {
    try make("film.mp4", "old")
    let deletion = try deletion("film.mp4")
    guard case .file(let version) = try deletion.look() else { throw Unexpected() }
    switch replacement {
    case .renamed:
      try make("new", "new")
      #expect(rename("\(fixture.root)/new", "\(fixture.root)/film.mp4") == 0)
    case .removedAndMade:
      // The new file may get the same inode.
      #expect(unlink("\(fixture.root)/film.mp4") == 0)
      try make("film.mp4", "new!")
    case .written: try make("film.mp4", "new!")
    }
    let error = #expect(throws: StorageError.self) { _ = try deletion.runExactly(version, aside: aside) }
    #expect(error?.failure.class == .retry && error?.message.contains("it was replaced") == true)
    let contents = try fixture.contents("film.mp4")
    #expect(contents.hasPrefix("new"))
    #expect(try fixture.storage.volume("default").staged().isEmpty)
  }

  @Test("a directory that takes the place of a file stays")
  func becomesDirectory() throws {
    try make("film")
    let deletion = try deletion("film", isRecursive: false)
    guard case .file = try deletion.look() else { throw Unexpected() }
    try FileManager.default.removeItem(atPath: "\(fixture.root)/film")
    try makeDirectory("film")
    try make("film/kept")
    refuses(deletion, .retry, "it has become a directory")
    #expect(exists("film/kept"))
  }

  @Test("a storage inside a directory stays, with everything beside it")
  func nestedStorage() throws {
    try makeDirectory("all/inner")
    try make("all/film")
    try Volume.initialise(name: "inner", path: "\(fixture.root)/all/inner")
    let deletion = try deletion("all")
    refuses(deletion, .fail, "is a storage of its own")
    #expect(exists("all/inner/.reelhaul/volume"))
  }

  @Test("directories that are nested too deep are refused, and nothing is deleted if a survey comes first")
  func depth() throws {
    try makeDirectory("deep/" + Array(repeating: "d", count: 510).joined(separator: "/"))
    let error = #expect(throws: StorageError.self) { _ = try deletion("deep").survey() }
    #expect(error?.code == .destinationInvalid && error?.message.contains("more than 500 deep") == true)
    #expect(code { _ = try deletion("deep").run() } == .destinationInvalid)
    #expect(exists("deep"))
  }

  enum Mounted: CaseIterable { case directory, emptyDirectory, file }

  @Test(
    "what is mounted below a root stays, also if it is of the same file system, and nothing beside it is deleted",
    .enabled(if: BindMount.isPossible, "bind mounts need root"), arguments: Mounted.allCases)
  func bindMount(_ mounted: Mounted) throws {
    try makeDirectory("a/place/deep")
    try makeDirectory("elsewhere/deep")
    try make("a/beside")
    try make("a/file")
    try make("elsewhere/file")
    if mounted == .directory { try make("elsewhere/deep/stays") }
    let at = mounted == .file ? "a/file" : "a/place"
    let from = mounted == .file ? "elsewhere/file" : "elsewhere"
    let mount = try BindMount(of: "\(fixture.root)/\(from)", at: "\(fixture.root)/\(at)")
    try withExtendedLifetime(mount) {
      // The directory above it, the mount itself, and what is beneath it.
      let paths = ["a", at] + (mounted == .file ? [] : ["\(at)/file", "\(at)/deep", "\(at)/deep/absent"])
      for path in paths {
        let deletion = try deletion(path)
        var calls = [{ _ = try deletion.survey() }]
        if path != "a" {
          calls += [{ _ = try deletion.look() }, { _ = try deletion.run() }]
        }
        for call in calls {
          let error = #expect(throws: StorageError.self) { try call() }
          #expect(error?.failure.class == .fail && error?.code == .destinationInvalid)
          #expect(error?.message.contains("\(fixture.root)/\(at)") == true, "\(path): \(error?.message ?? "")")
          #expect(error?.message.contains("is on another file system") == true)
        }
      }
      #expect(exists("a/beside") && exists("elsewhere/file") && exists("elsewhere/deep"))
      #expect(throws: StorageError.self) { try deletion("a").run() }
      #expect(exists("elsewhere/file") && exists("elsewhere/deep"))
      #expect(exists("elsewhere/deep/stays") == (mounted == .directory))
      removeTree("\(fixture.root)/a")
      #expect(exists("elsewhere/file") && exists("elsewhere/deep"))
      #expect(exists("elsewhere/deep/stays") == (mounted == .directory))
    }
  }

  @Test("a file on another file system below the root stays", .enabled(if: SmallDisk.isPossible))
  func fileOnAnotherFileSystem() throws {
    try makeDirectory("disk")
    try withExtendedLifetime(SmallDisk(mebibytes: 1, at: "\(fixture.root)/disk")) { _ in
      try make("disk/stays")
      let deletion = try deletion("disk/stays")
      for call in [{ _ = try deletion.look() }, { _ = try deletion.survey() }, { _ = try deletion.run() }] {
        #expect(code(call) == .destinationInvalid)
      }
      #expect(exists("disk/stays"))
    }
  }

  @Test("another file system below the directory is not entered", .enabled(if: SmallDisk.isPossible))
  func otherFileSystem() throws {
    try makeDirectory("a/disk")
    let disk = try SmallDisk(mebibytes: 1, at: "\(fixture.root)/a/disk")
    try make("a/disk/stays")
    let error = #expect(throws: StorageError.self) { _ = try deletion("a").run() }
    #expect(error?.code == .destinationInvalid && error?.message.contains("another file system") == true)
    #expect(exists("a/disk/stays"))
    _ = disk
  }

  @Test("the error for a missing permission names the path")
  func permission() throws {
    try makeDirectory("a")
    try make("a/film.mp4")
    #expect(chmod("\(fixture.root)/a", 0o555) == 0 && chmod(fixture.directory.path, 0o755) == 0)
    #expect(chmod("\(fixture.root)/.reelhaul", 0o755) == 0)
    let deletion = try deletion("a/film.mp4")
    let result = Lock<StorageError?>(nil)
    let thread = Thread(name: "other-user") {
      // This changes only the rights of this thread.
      if geteuid() == 0 { actAsNobody() }
      do throws(StorageError) {
        _ = try deletion.run()
      } catch {
        result.withLock { $0 = error }
      }
    }
    thread.join()
    let error = try #require(result.withLock { $0 })
    #expect(error.code == .denied && error.failure.class == .wait)
    #expect(error.message.contains("a/film.mp4: Permission denied"), "\(error)")
    #expect(exists("a/film.mp4"))
    #expect(chmod("\(fixture.root)/a", 0o755) == 0)
  }

  @Test("a root that is not mounted any more refuses")
  func unmounted() throws {
    try make("film.mp4")
    let deletion = try deletion("film.mp4")
    #expect(rename(fixture.root, "\(fixture.root).away") == 0)
    #expect(code { _ = try deletion.look() } == .volumeGone)
    #expect(code { _ = try deletion.run() } == .volumeGone)
    #expect(rename("\(fixture.root).away", fixture.root) == 0)
    #expect(try deletion.run())
  }
}

private struct Unexpected: Error {}

/// Gives this thread's file operations the rights of an unprivileged user. Swift does not import the function.
private func actAsNobody() {
  typealias Function = @convention(c) (uid_t) -> Int32
  guard let symbol = dlsym(nil, "setfsuid") else { return }
  _ = unsafeBitCast(symbol, to: Function.self)(65534)
}

/// Ends a deletion after some files.
private final class DeletionObserver: Deletion.Observer {
  private let limit: Int64
  private let state = Lock(Deletion.Count())

  init(stopAfter limit: Int64 = .max) {
    self.limit = limit
  }

  var count: Deletion.Count { state.withLock { $0 } }
  var goesOn: Bool { count.files < limit }
  func deleted(_ count: Deletion.Count) { state.withLock { $0 = count } }
}
