import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

/// A storage with one initialised root, `default`, in its own directory.
struct StorageFixture {
  let directory: TemporaryDirectory
  let root: String
  let storage: Storage

  /// - Parameter openFiles: So few that staging files are closed and opened again all the time.
  init(openFiles: Int = 1) throws {
    directory = try TemporaryDirectory()
    root = "\(directory.path)/root"
    storage = Storage(roots: ["default": root], openFiles: openFiles)
    try storage.initialise()
  }

  func url(_ path: String) throws -> StorageURL {
    try StorageURL("storage://default/\(path)")
  }

  /// A staging file that contains `text`.
  func staged(_ text: String, task: UniqueID = .random(), epoch: Int = 1) throws -> StagingFile {
    let file = try storage.create(for: url("x"), name: StagingName(task: task, epoch: epoch, generation: 1))
    try file.write(text)
    return file
  }

  func contents(_ path: String) throws -> String {
    let file = try FileDescriptor.open("\(root)/\(path)", O_RDONLY)
    return try String(decoding: file.read(0..<file.size()), as: UTF8.self)
  }

  var staging: String { "\(root)/.reelhaul/staging" }
}

/// Makes a directory, FIFO or socket; `kind` is one of the `S_IF…` constants.
func makeEntry(_ kind: mode_t, at path: String) throws {
  guard (kind == S_IFDIR ? mkdir(path, 0o755) : mknod(path, kind | 0o600, 0)) == 0 else {
    throw SystemError.last("make \(path)")
  }
}

extension StagingFile {
  func write(_ text: String) throws {
    try Array(text.utf8).withUnsafeBytes { try write($0, at: 0) }
  }
}

/// A `tmpfs` of a few mebibytes, for full and read-only disks. Only root can mount one.
final class SmallDisk: Sendable {
  let path: String
  private let directory: TemporaryDirectory?

  static let isPossible = geteuid() == 0 && (try? SmallDisk(mebibytes: 1)) != nil

  init(mebibytes: Int) throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    path = "\(directory.path)/disk"
    guard mkdir(path, 0o755) == 0 else { throw SystemError.last("mkdir \(path)") }
    try Self.mount(mebibytes, at: path)
  }

  /// Mounted over the directory `path`.
  init(mebibytes: Int, at path: String) throws {
    directory = nil
    self.path = path
    try Self.mount(mebibytes, at: path)
  }

  private static func mount(_ mebibytes: Int, at path: String) throws {
    try run("mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "reelhaul-test", path)
  }

  deinit {
    try? run("umount", "-l", path)
  }

  func makeReadOnly() throws {
    try run("mount", "-o", "remount,ro", path)
  }

}

/// A directory or file that is also mounted at another path. Only root can mount one.
final class BindMount: Sendable {
  private let path: String

  static let isPossible =
    geteuid() == 0
    && (try? TemporaryDirectory()).map { (try? BindMount(of: $0.path, at: $0.path)) != nil } == true

  init(of source: String, at path: String) throws {
    self.path = path
    try run("mount", "--bind", source, path)
  }

  deinit {
    try? run("umount", "-l", path)
  }
}

private func run(_ arguments: String...) throws {
  guard try ChildProcess(arguments[0], Array(arguments.dropFirst())).waitBlocking() == .exited(0) else {
    throw SystemError(errno: EPERM, operation: arguments.joined(separator: " "))
  }
}
