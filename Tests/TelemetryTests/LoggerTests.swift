import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TestKit
import Testing

@Suite struct LoggerTests {
  /// The lines that `body` logs.
  private func output(
    _ format: LogFormat, level: LogLevel = .info, _ body: (Logger) -> Void
  ) throws -> [String] {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/log"
    let file = try FileDescriptor.open(path, O_RDWR | O_CREAT)
    let logger = Logger(level: level, format: format, descriptor: file.raw)
    body(logger)
    logger.close()
    let size = Int(try file.size())
    let bytes = try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test("a line is one JSON object with the time, the level, the message and the fields")
  func aLineIsOneJSONObject() throws {
    let lines = try output(.json) { $0.info("task claimed", ["task": "a b", "epoch": 3, "first": true]) }
    #expect(lines.count == 1)
    let time = lines[0].firstMatch(of: #/"ts":"([^"]+)"/#).flatMap { Timestamp(String($0.1)) }
    #expect(abs((time?.microseconds ?? 0) - Clocks.realtimeMicroseconds()) < 3_600_000_000)
    #expect(
      lines[0].hasSuffix("\"level\":\"info\",\"msg\":\"task claimed\",\"task\":\"a b\",\"epoch\":3,\"first\":true}"))
  }

  @Test("lines that a full disk has cost are counted once there is room") func fullDisk() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT | O_APPEND)
    let full = try FileDescriptor.open("/dev/full", O_WRONLY)
    let used = dup(full.raw)
    defer { close(used) }
    let logger = Logger(level: .info, format: .json, descriptor: used)
    var count = 0
    // Nobody sees when the writer has failed, so it is tried until it has.
    try await eventually("a dropped line is told") {
      dup2(full.raw, used)
      logger.info("lost")
      count += 1
      try await Task.sleep(for: .milliseconds(10))
      dup2(file.raw, used)
      logger.info("kept")
      try await Task.sleep(for: .milliseconds(10))
      return try String(decoding: file.contents(), as: UTF8.self).contains("log lines dropped")
    }
    logger.close()
    let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
    #expect(lines.count { $0.contains("kept") } == count, "\(lines)")
    #expect(lines.contains { $0.contains("\"msg\":\"log lines dropped\",\"count\":1}") }, "\(lines)")
  }

  @Test("control characters are escaped in every format")
  func controlCharactersAreEscaped() throws {
    for format in [LogFormat.json, .logfmt, .journal] {
      let lines = try output(format) { $0.warning("a\u{1b}[2J\nb", ["name": "x\r\u{7f}"]) }
      #expect(lines.count == 1)
      #expect(lines[0].utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
    }
  }

  @Test("what foreign text could control or deceive a terminal with is escaped, and all else stays")
  func textsUnsafeOnATerminalAreEscaped() throws {
    for format in [LogFormat.json, .logfmt, .journal] {
      let lines = try output(format) { $0.warning("a\u{9b}2J", ["name": "x\u{202e}y\u{e0001}", "film": "é🎬👨‍👩"]) }
      #expect(lines.count == 1 && lines[0].contains(#""a\u009b2J""#), "\(lines)")
      #expect(lines[0].contains(#""x\u202ey\udb40\udc01""#) && lines[0].contains("é🎬👨‍👩"), "\(lines)")
    }
  }

  @Test("logfmt quotes values with spaces or equal signs, and empty values")
  func logfmtQuotesWhatNeedsIt() throws {
    let lines = try output(.logfmt) { $0.error("two words", ["plain": "x", "quoted": "a=b", "empty": ""]) }
    #expect(lines[0].hasSuffix("level=error msg=\"two words\" plain=x quoted=\"a=b\" empty=\"\""))
  }

  @Test("a key cannot end its field or control a terminal") func logfmtKeys() throws {
    let lines = try output(.logfmt) { $0.info("m", ["a b=\"c\u{1b}": 1, "": 2, "é": 3]) }
    #expect(lines.count == 1 && lines[0].hasSuffix("msg=m a_b__c_=1 _=2 é=3"), "\(lines)")
  }

  @Test("a line for the journal begins with its priority")
  func theJournalGetsThePriority() throws {
    #expect(try output(.journal) { $0.error("bad") } == ["<3>msg=bad"])
  }

  @Test("the message of a line below the level is not built")
  func linesBelowTheLevelAreNotEvenBuilt() throws {
    let lines = try output(.json, level: .warning) { logger in
      logger.info(
        {
          Issue.record("the message was built")
          return ""
        }())
    }
    #expect(lines.isEmpty)
  }

  /// A pipe that takes nothing more, and how many bytes it has.
  private func fullPipe(isBlocking: Bool) throws -> (input: Int32, output: Int32, filled: Int) {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    let flags = fcntl(ends[1], F_GETFL)
    _ = fcntl(ends[1], F_SETFL, flags | O_NONBLOCK)
    var filled = 0
    let spaces = [UInt8](repeating: UInt8(ascii: " "), count: 4096)
    while case let count = write(ends[1], spaces, spaces.count), count > 0 { filled += count }
    if isBlocking { _ = fcntl(ends[1], F_SETFL, flags) }
    return (ends[0], ends[1], filled)
  }

  /// What comes from a pipe until `isEnough`.
  private func arrivals(at input: Int32, until isEnough: ([UInt8]) -> Bool) -> [UInt8] {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
    var arrival = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
    while !isEnough(bytes), poll(&arrival, 1, 10_000) > 0 {
      let count = read(input, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return bytes
  }

  @Test(
    "closing ends although nobody reads the pipe, and what waits is written once somebody does",
    arguments: [true, false])
  func nobodyReads(isBlocking: Bool) throws {
    let (input, output, filled) = try fullPipe(isBlocking: isBlocking)
    defer { for end in [input, output] { Glibc.close(end) } }
    let logger = Logger(format: .json, descriptor: output)
    logger.info("the last words")
    logger.close()
    let bytes = arrivals(at: input) { $0.count > filled && $0.last == UInt8(ascii: "\n") }
    #expect(String(decoding: bytes[filled...], as: UTF8.self).contains("the last words"))
  }

  @Test("lines that nobody reads take a bounded memory: what is too much is dropped, and counted")
  func dropped() throws {
    let (input, output, filled) = try fullPipe(isBlocking: true)
    defer { for end in [input, output] { Glibc.close(end) } }
    let logger = Logger(format: .json, descriptor: output)
    for _ in 0..<3 * Logger.capacity { logger.info("a line") }
    func arrives(_ text: String) -> [UInt8] {
      arrivals(at: input) {
        $0.last == UInt8(ascii: "\n") && String(decoding: $0.suffix(8192), as: UTF8.self).contains(text)
      }
    }
    var bytes = arrives("log lines dropped")
    // Nothing may be written any more once the pipe is closed.
    logger.info("the end")
    bytes += arrives("the end")
    logger.close()
    let lines = String(decoding: bytes.dropFirst(filled), as: UTF8.self).split(separator: "\n")
    let counts = lines.compactMap { $0.firstMatch(of: #/log lines dropped","count":(\d+)/#).flatMap { Int($0.1) } }
    #expect(counts.reduce(0, +) > 0 && lines.count <= 2 * Logger.capacity + 3, "\(lines.count) lines, \(counts)")
  }
}
