import Glibc
import ReelhaulSystem
import TaskCore

/// Writes one line per event to a descriptor (stderr by default), from its own thread.
///
/// A line below the level costs one comparison. At most ``capacity`` lines wait. Further lines are dropped and
/// counted, and the count is logged once there is room.
package final class Logger: Sendable {
  private struct Ring {
    var lines: [LogLine] = []
    var dropped = 0
    var isClosed = false
    /// Whether the writer has written the last line.
    var isDone = false
  }

  package static let capacity = 4096

  package let level: LogLevel
  private let format: LogFormat
  private let ring: Condition<Ring>
  private let writer: Thread

  package init(level: LogLevel = .info, format: LogFormat? = nil, descriptor: Int32 = STDERR_FILENO) {
    self.level = level
    let format = format ?? Self.format(for: descriptor)
    self.format = format
    let ring = Condition(Ring())
    self.ring = ring
    writer = Thread(name: "log") { Self.write(ring, format, descriptor) }
  }

  package func log(
    _ level: LogLevel, _ message: @autoclosure () -> String,
    _ fields: @autoclosure () -> KeyValuePairs<String, LogValue>
  ) {
    guard level >= self.level else { return }
    log(level, message(), fields: fields().map { ($0.key, $0.value) })
  }

  /// As ``log(_:_:_:)``, with fields that are known only as the program runs.
  package func log(_ level: LogLevel, _ message: String, fields: [(String, LogValue)]) {
    guard level >= self.level else { return }
    let line = LogLine(
      level: level, message: message, fields: fields, time: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
    ring.withLock { ring in
      if ring.lines.count < Self.capacity, !ring.isClosed { ring.lines.append(line) } else { ring.dropped += 1 }
    }
    ring.signal()
  }

  package func debug(
    _ message: @autoclosure () -> String, _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { log(.debug, message(), fields()) }

  package func info(
    _ message: @autoclosure () -> String, _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { log(.info, message(), fields()) }

  package func notice(
    _ message: @autoclosure () -> String, _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { log(.notice, message(), fields()) }

  package func warning(
    _ message: @autoclosure () -> String, _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { log(.warning, message(), fields()) }

  package func error(
    _ message: @autoclosure () -> String, _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:]
  ) { log(.error, message(), fields()) }

  /// Writes the waiting lines and ends the writer. Blocks, for at most a second: nobody may read a pipe that is full, and
  /// the process must end. Later lines are dropped.
  package func close() {
    let first = ring.withLock { ring in
      defer { ring.isClosed = true }
      return !ring.isClosed
    }
    guard first else { return }
    ring.broadcast()
    if ring.wait(for: .seconds(1), until: \.isDone) { writer.join() } else { writer.detach() }
  }

  private static func write(_ ring: Condition<Ring>, _ format: LogFormat, _ descriptor: Int32) {
    var bytes: [UInt8] = []
    // What a full disk has cost: lines, and the end of the last one.
    var (lost, isCut) = (0, false)
    while true {
      let (lines, dropped, isClosed) = ring.wait(
        until: { !$0.lines.isEmpty || $0.dropped > 0 || $0.isClosed },
        then: { ring in
          defer {
            ring.lines = []
            ring.dropped = 0
          }
          return (ring.lines, ring.dropped, ring.isClosed)
        })
      bytes.removeAll(keepingCapacity: true)
      if isCut { bytes.append(UInt8(ascii: "\n")) }
      for line in lines { line.encode(format, into: &bytes) }
      lost += dropped
      let end = bytes.count
      if lost > 0, !isClosed {
        LogLine(
          level: .warning, message: "log lines dropped", fields: [("count", .integer(lost))],
          time: Timestamp(microseconds: Clocks.realtimeMicroseconds())
        ).encode(format, into: &bytes)
      }
      let written = writeAll(bytes, to: descriptor)
      if written == bytes.count { lost = 0 }
      if written < end { lost += bytes[max(written, isCut ? 1 : 0)..<end].count { $0 == UInt8(ascii: "\n") } }
      if written > 0 { isCut = bytes[written - 1] != UInt8(ascii: "\n") }
      if isClosed {
        ring.withLock { $0.isDone = true }
        return ring.broadcast()
      }
    }
  }

  private static func format(for descriptor: Int32) -> LogFormat {
    if isatty(descriptor) == 1 { return .logfmt }
    var status = stat()
    if let stream = getenv("JOURNAL_STREAM"), fstat(descriptor, &status) == 0,
      String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
    {
      return .journal
    }
    return .json
  }

  /// Returns how many bytes could be written: a disk may be full.
  private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int {
    var start = 0
    while start < bytes.count {
      let count = bytes[start...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        start += count
      } else if errno == EAGAIN {
        StandardStream.wait(for: POLLOUT, at: descriptor)
      } else if errno != EINTR {
        return start
      }
    }
    return start
  }
}
