import Glibc
import ReelhaulSystem
import Testing

/// A pipe; closed with its owner.
final class Pipe: Sendable {
  let reading: FileDescriptor
  let writing: FileDescriptor

  init() throws {
    var descriptors: [Int32] = [0, 0]
    guard pipe(&descriptors) == 0 else { throw SystemError.last("pipe") }
    reading = FileDescriptor(raw: descriptors[0], path: "pipe")
    writing = FileDescriptor(raw: descriptors[1], path: "pipe")
  }
}

func send(_ byte: UInt8, to descriptor: Int32) {
  _ = withUnsafeBytes(of: byte) { write(descriptor, $0.baseAddress, 1) }
}

@Suite struct FileTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func root() throws -> FileDescriptor {
    try FileDescriptor.open(directory.path, O_RDONLY | O_DIRECTORY)
  }

  @Test("a copy writes nothing once it is not to go on, and tells when the source cannot be read")
  func copies() throws {
    let root = try root()
    let source = try root.openBeneath("source", O_RDWR | O_CREAT)
    try [UInt8](repeating: 7, count: 3_000_000).withUnsafeBytes { try source.write($0, at: 0) }
    let file = try root.openBeneath("copy", O_RDWR | O_CREAT)
    var asked = 0
    let end = try file.copyThroughMemory(0..<3_000_000, from: source) { () throws(SystemError) in
      asked += 1
      return asked < 3
    }
    #expect(try end == .reached(2 << 20) && file.size() == 2 << 20)
    #expect(try file.copy(2 << 20..<3_000_000, from: source) { () throws(SystemError) in false } == .reached(2 << 20))
    #expect(try file.size() == 2 << 20)
    #expect(try file.copy(2 << 20..<4_000_000, from: source) == .reached(3_000_000))
    let unreadable = try root.openBeneath("source", O_WRONLY)
    guard case .unreadable(let error) = try file.copyThroughMemory(0..<10, from: unreadable) else {
      Issue.record("it was read")
      return
    }
    #expect(error.errno == EBADF)
  }

  @Test("bytes that are written are read back, and a write past the end extends the file")
  func writtenBytesAreReadBack() throws {
    let file = try root().openBeneath("a", O_RDWR | O_CREAT)
    try file.allocate(0..<1_000_000)
    #expect(try file.size() == 1_000_000)
    try [UInt8](repeating: 7, count: 300).withUnsafeBytes { try file.write($0, at: 999_800) }
    try file.syncData()
    #expect(try file.size() == 1_000_100)
    var back = [UInt8](repeating: 0, count: 500)
    #expect(try back.withUnsafeMutableBytes { try file.read(into: $0, at: 999_800) } == 300)
    #expect(back[..<300].allSatisfy { $0 == 7 })
  }

  @Test("what comes out of a pipe is read to its end, but not beyond the limit") func pipes() throws {
    signal(SIGPIPE, SIG_IGN)
    for limit in [200_000, 200_001] {
      var ends: [Int32] = [-1, -1]
      try #require(pipe(&ends) == 0)
      let reading = FileDescriptor(raw: ends[0], path: "pipe")
      let writing = ends[1]
      // More than a pipe holds.
      Thread(name: "writer") {
        for byte in UInt8(0)..<3 {
          let bytes = [UInt8](repeating: byte, count: 66_667)
          _ = write(writing, bytes, bytes.count)
        }
        close(writing)
      }.detach()
      if limit == 200_001 {
        let bytes = try reading.contents(limit: limit)
        #expect(bytes.count == 200_001 && bytes[0] == 0 && bytes[66_667] == 1 && bytes[200_000] == 2)
      } else {
        let error = #expect(throws: SystemError.self) { try reading.contents(limit: limit) }
        #expect(error?.errno == EFBIG)
      }
    }
  }

  @Test(
    "a path that leaves its directory is not opened",
    arguments: ["../etc/passwd", "/etc/passwd", "link/passwd", "a/../../x"])
  func nothingOutsideADirectoryIsOpenedBeneathIt(path: String) throws {
    symlink("/etc", "\(directory.path)/link")
    mkdir("\(directory.path)/a", 0o755)
    let root = try root()
    #expect(throws: SystemError.self) { _ = try root.openBeneath(path, O_RDONLY) }
  }

  @Test("a rename without replacing fails if the new name exists")
  func aRenameDoesNotReplace() throws {
    let root = try root()
    for name in ["a", "b"] {
      let file = try root.openBeneath(name, O_WRONLY | O_CREAT)
      try Array(name.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }
    do {
      try FileDescriptor.renameNoReplace(from: root, "a", to: root, "b")
      Issue.record("it replaced the file")
    } catch {
      #expect(error.errno == EEXIST)
      #expect(error.description.hasSuffix("/b: File exists"))
    }
    try FileDescriptor.renameNoReplace(from: root, "a", to: root, "c")
    #expect(try root.openBeneath("c", O_RDONLY).size() == 1)
  }

  @Test("an error names the call, the file and the reason")
  func theErrorNamesTheFileAndTheReason() {
    do throws(SystemError) {
      _ = try FileDescriptor.open("\(directory.path)/none", O_RDONLY)
      Issue.record("it opened")
    } catch {
      #expect(error.errno == ENOENT)
      #expect(error.description == "open \(directory.path)/none: No such file or directory")
    }
  }

  @Test("what a killed run left of a text file is in nobody's way: neither its mode nor what it links to is used")
  func leftText() throws {
    let path = "\(directory.path)/settings"
    for isSymbolic in [false, true] {
      try TextFile.write("left", to: "\(path).left")
      let linked = isSymbolic ? symlink("\(path).left", "\(path).new") : link("\(path).left", "\(path).new")
      try #require(linked == 0)
      try TextFile.write("new", to: path, mode: 0o600)
      let status = try FileDescriptor.open(path, O_RDONLY | O_NOFOLLOW).status()
      #expect(status.st_mode & 0o777 == 0o600)
      #expect(try TextFile.read(path) == "new" && TextFile.read("\(path).left") == "left")
      #expect(access("\(path).new", F_OK) != 0)
    }
  }

  @Test("the limit of open files is raised as far as the system allows")
  func limitOfFiles() throws {
    var limit = rlimit()
    try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    // Only a little, because other tests have files open.
    limit.rlim_cur = limit.rlim_max - 1
    try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #expect(FileLimit.raise() == Int(clamping: limit.rlim_max))
    try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #expect(limit.rlim_cur == limit.rlim_max)
  }

  @Test("CRC32C is Castagnoli's, and can continue from a part")
  func crcIsCastagnoli() {
    let bytes = Array("123456789".utf8)
    #expect(bytes.withUnsafeBytes { crc32c($0) } == 0xE306_9283)
    let half = bytes[..<4].withUnsafeBytes { crc32c($0) }
    #expect(bytes[4...].withUnsafeBytes { crc32c($0, continuing: half) } == 0xE306_9283)
  }

  @Test("a directory of thousands of names is listed in portions, each name once, and again after a rewind")
  func listsInPortions() throws {
    let root = try root()
    let names = Set((0..<5000).map { "a name that is not so short \($0)" })
    for name in names { _ = try root.openBeneath(name, O_WRONLY | O_CREAT) }
    for _ in 0..<2 {
      var listed: [String] = []
      while case let next = try root.nextEntries(), !next.isEmpty {
        #expect(next.count < 1000)
        listed += next.map(\.description)
      }
      #expect(listed.count == names.count && Set(listed) == names)
      try root.rewind()
    }
    #expect(try Set(root.entries()) == names)
  }

  @Test("a temporary directory is removed with its contents")
  func aTemporaryDirectoryGoesWithItsContents() throws {
    var temporary: TemporaryDirectory? = try TemporaryDirectory()
    let path = try #require(temporary?.path)
    mkdir("\(path)/d", 0o755)
    _ = try FileDescriptor.open("\(path)/d/f", O_WRONLY | O_CREAT)
    temporary = nil
    #expect(access(path, F_OK) != 0)
  }
}
