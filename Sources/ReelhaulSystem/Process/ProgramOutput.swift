import CReelhaulSystem
import Glibc

/// What a program printed, and how it ended.
package struct ProgramOutput: Sendable {
  package var output: [UInt8]
  /// The beginning of what it wrote to standard error.
  package var errors: [UInt8]
  package var status: ExitStatus

  /// Why a program was ended before it had finished.
  package enum Stop: Error, Hashable, Sendable {
    case tooMuchOutput
    case tooLate
  }

  /// Runs a program to its end. At a limit, it is killed, with the processes that it has started. Blocks.
  ///
  /// Throws ``Stop``, or ``SystemError`` if the program cannot be started.
  package static func run(
    _ executable: String, _ arguments: [String], withholding: String? = nil, limit: Int, errorLimit: Int = 16 << 10,
    timeout: Duration
  ) throws -> ProgramOutput {
    let deadline = Clocks.boottime() + timeout.nanoseconds
    var output = try Capture(limit: limit)
    var errors = try Capture(limit: errorLimit)
    var options = ChildProcess.Options()
    options.withholding = withholding
    options.stdout = output.path
    options.stderr = errors.path
    options.signalOnParentDeath = SIGKILL
    let child = try ChildProcess(executable, arguments, options)
    output.closeWriter()
    errors.closeWriter()
    // A process that the program left behind may keep the pipes open, so they are read for a moment after its end only.
    var isLast = false
    while !(output.isAtEnd && errors.isAtEnd && child.status != nil) {
      let milliseconds = min((deadline - Clocks.boottime()) / 1_000_000, 10)
      guard milliseconds >= 0 else {
        child.killGroup(SIGKILL)
        throw Stop.tooLate
      }
      let hasEnded = child.status != nil
      let count = try Capture.wait(&output, &errors, milliseconds: Int32(milliseconds))
      guard !output.isTooLong else {
        child.killGroup(SIGKILL)
        throw Stop.tooMuchOutput
      }
      if isLast, count == 0 { break }
      isLast = hasEnded
    }
    return ProgramOutput(output: output.bytes, errors: errors.bytes, status: child.status ?? child.waitBlocking())
  }
}

/// A pipe that is read into memory up to a limit.
private struct Capture: ~Copyable {
  private let reader: FileDescriptor
  /// -1 after ``closeWriter()``.
  private var writer: Int32
  private let limit: Int
  private(set) var bytes: [UInt8] = []
  private(set) var isTooLong = false
  private(set) var isAtEnd = false

  init(limit: Int) throws(SystemError) {
    var ends: [Int32] = [0, 0]
    let result = rh_pipe(&ends)
    guard result >= 0 else { throw SystemError(errno: -result, operation: "pipe") }
    reader = FileDescriptor(raw: ends[0], path: "pipe")
    writer = ends[1]
    self.limit = limit
  }

  deinit {
    if writer >= 0 { close(writer) }
  }

  /// Where a child finds the writing end while it starts.
  var path: String { "/proc/self/fd/\(writer)" }

  mutating func closeWriter() {
    close(writer)
    writer = -1
  }

  /// Reads what there is, at most until the timeout. Returns how many of the pipes had something, or had ended.
  static func wait(_ first: inout Capture, _ second: inout Capture, milliseconds: Int32) throws(SystemError) -> Int {
    // A negative descriptor is left out.
    var polls = [
      pollfd(fd: first.isAtEnd ? -1 : first.reader.raw, events: Int16(POLLIN), revents: 0),
      pollfd(fd: second.isAtEnd ? -1 : second.reader.raw, events: Int16(POLLIN), revents: 0),
    ]
    let count = poll(&polls, 2, milliseconds)
    guard count >= 0 else {
      // A signal came first, so there may be something.
      if errno == EINTR { return 1 }
      throw .last("poll")
    }
    if polls[0].revents != 0 { first.receive() }
    if polls[1].revents != 0 { second.receive() }
    return Int(count)
  }

  private mutating func receive() {
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      let count = read(reader.raw, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { return }
      guard count > 0 else {
        isAtEnd = true
        return
      }
      let room = limit - bytes.count
      isTooLong = isTooLong || count > room
      bytes += buffer.prefix(min(count, room))
    }
  }
}
