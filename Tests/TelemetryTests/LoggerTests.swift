import Glibc
import System
import Telemetry
import Testing

@Suite struct LoggerTests {
  /// What `body` logs, as it is written.
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

  @Test func aLineIsOneJSONObject() throws {
    let lines = try output(.json) { $0.info("task claimed", ["task": "a b", "epoch": 3, "first": true]) }
    #expect(lines.count == 1)
    #expect(lines[0].hasPrefix("{\"ts\":\"2"))
    #expect(
      lines[0].hasSuffix("\"level\":\"info\",\"msg\":\"task claimed\",\"task\":\"a b\",\"epoch\":3,\"first\":true}"))
  }

  @Test func controlCharactersAreEscaped() throws {
    for format in [LogFormat.json, .logfmt, .journal] {
      let lines = try output(format) { $0.warning("a\u{1b}[2J\nb", ["name": "x\r\u{7f}"]) }
      #expect(lines.count == 1)
      #expect(lines[0].utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
    }
  }

  @Test func logfmtQuotesWhatNeedsIt() throws {
    let lines = try output(.logfmt) { $0.error("two words", ["plain": "x", "quoted": "a=b", "empty": ""]) }
    #expect(lines[0].hasSuffix("level=error msg=\"two words\" plain=x quoted=\"a=b\" empty=\"\""))
  }

  @Test func theJournalGetsThePriority() throws {
    #expect(try output(.journal) { $0.error("bad") } == ["<3>msg=bad"])
  }

  @Test func linesBelowTheLevelAreNotEvenBuilt() throws {
    let lines = try output(.json, level: .warning) { logger in
      logger.info(
        {
          Issue.record("the message was built")
          return ""
        }())
    }
    #expect(lines.isEmpty)
  }

  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (951_827_696_789_000, "2000-02-29T12:34:56.789Z"),
      (-1, "1969-12-31T23:59:59.999Z"), (4_102_444_799_999_000, "2099-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func timesAreUTC(microseconds: Int64, expected: String) {
    #expect(LogTime(microseconds: microseconds).description == expected)
  }
}
