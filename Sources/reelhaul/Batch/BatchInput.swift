import Glibc
import ReelhaulMessages
import ReelhaulSystem

/// The input of a batch, a file or standard input, in blocks of lines. It can be read twice.
final class BatchInput {
  private static let blockSize = 1 << 18

  /// Whether the input ends here, however much is left; asked before each block, and some times a second while it waits.
  var isStopped: () -> Bool = { false }
  private var descriptor: Int32
  private var splitter = LineSplitter(limit: CommandDecoder.sizeLimit)
  private(set) var isAtEnd = false
  /// Where the input began; nil for a pipe.
  private var start: off_t?
  /// A copy of the bytes from a pipe, if it must be read twice.
  private var copy: Int32?

  /// `path` may be `-` for standard input.
  init(_ path: String, standardInput: Int32 = STDIN_FILENO) throws {
    descriptor = path == "-" ? standardInput : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw CommandFailure(.usage, "\(SystemError.last("open \(path)"))") }
    var status = stat()
    guard fstat(descriptor, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR else {
      throw CommandFailure(.usage, "\(path) is a directory, not a file of JSON lines")
    }
    let position = lseek(descriptor, 0, SEEK_CUR)
    if position >= 0 { start = position }
  }

  deinit {
    if descriptor != STDIN_FILENO { close(descriptor) }
    if let copy, copy != descriptor { close(copy) }
  }

  /// The lines that end in the next block; nil at the end, or if it is stopped.
  func next() throws -> [LineSplitter.Line]? {
    guard !isAtEnd else { return nil }
    return try withUnsafeTemporaryAllocation(byteCount: Self.blockSize, alignment: 16) { buffer in
      while !isStopped() {
        // A pipe may have nothing for hours.
        guard StandardStream.wait(for: POLLIN, at: descriptor, milliseconds: 100) else { continue }
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count > 0 {
          let block = UnsafeRawBufferPointer(rebasing: buffer[..<count])
          if let copy { try Self.append(block, to: copy) }
          return splitter.add(block)
        }
        if count == 0 {
          isAtEnd = true
          return splitter.finish()
        }
        guard errno == EAGAIN || errno == EINTR else { throw SystemError.last("read the batch") }
      }
      return nil
    }
  }

  /// Keeps a pipe in a temporary file while it is read, so that ``rewind()`` is possible. Call it before the first
  /// block.
  func keep() throws {
    guard start == nil else { return }
    let directory = TemporaryDirectory.base
    var template = Array("\(directory)/reelhaul-batch-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else { throw SystemError.last("make a temporary file in \(directory)") }
    unlink(template)
    copy = file
  }

  /// Goes back to the beginning.
  func rewind() throws {
    if let copy { descriptor = copy }
    guard lseek(descriptor, start ?? 0, SEEK_SET) >= 0 else { throw SystemError.last("read the batch again") }
    copy = nil
    splitter = LineSplitter(limit: CommandDecoder.sizeLimit)
    isAtEnd = false
  }

  private static func append(_ block: UnsafeRawBufferPointer, to file: Int32) throws {
    var rest = block
    while !rest.isEmpty {
      let count = write(file, rest.baseAddress, rest.count)
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if errno != EINTR {
        throw SystemError.last("keep standard input in a temporary file (TMPDIR)")
      }
    }
  }
}
