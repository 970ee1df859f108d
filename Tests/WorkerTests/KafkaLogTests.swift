import Glibc
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TestKit
import Testing

@testable import WorkerCore

/// What the log of a worker tells of its clients of Kafka.
@Suite struct KafkaLogTests {
  /// The messages in the log after these notices.
  private func log(_ notices: [KafkaNotice]) throws -> [String] {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .notice, format: .json, descriptor: file.raw)
    let observer = try KafkaConfiguration(bootstrap: "127.0.0.1:9092").logging(to: log) { _ in }.observer
    for notice in notices { observer(notice) }
    log.close()
    // Each line is {"…","msg":"…","…"}.
    return try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n").map { line in
      let fields = line.split(separator: "\"")
      return String(fields[try #require(fields.firstIndex(of: "msg")) + 2])
    }
  }

  private let away = KafkaNotice.error(KafkaError(code: .allBrokersDown, message: "1/1 brokers are down"))

  @Test("an outage is told once, however many clients notice it, and its end once")
  func tellsOfAnOutageAndOfItsEnd() throws {
    let told = try log([.answered, away, away, away, .answered, .answered])
    #expect(told == ["Kafka cannot be reached", "Kafka can be reached again"])
  }

  @Test("an outage is told once, also if one client reports silence and another dead brokers")
  func tellsOnceOfSilence() throws {
    let silent = KafkaNotice.unanswered(KafkaError(code: .timedOut, message: "nobody answers"))
    #expect(try log([silent, away, .answered]) == ["Kafka cannot be reached", "Kafka can be reached again"])
    #expect(try log([away, silent, .answered]) == ["Kafka cannot be reached", "Kafka can be reached again"])
  }

  @Test("what comes and goes within a minute is told once")
  func isQuietAboutWhatFlickers() throws {
    let told = try log([away, .answered, away, .answered, away, .answered])
    #expect(told == ["Kafka cannot be reached", "Kafka can be reached again"])
  }

  @Test("a worker whose certificate is refused ends, if it is another one now than when it began") func renewedFiles()
    throws
  {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/ca.pem"
    try TextFile.write("old", to: path, mode: 0o600)
    let refusal = KafkaNotice.error(KafkaError(code: .tls, message: "it has expired"))
    for patience in [Duration.zero, .seconds(60)] {
      let ends = Lock<[String]>([])
      let log = Logger(level: .error, format: .json, descriptor: STDERR_FILENO)
      defer { log.close() }
      let observer = try KafkaConfiguration(
        bootstrap: "127.0.0.1:9092", properties: ["security.protocol": "SSL", "ssl.ca.location": path]
      ).logging(to: log, patience: patience) { error in ends.withLock { $0.append("\(error)") } }.observer
      for _ in 0..<3 { observer(refusal) }
      #expect(ends.withLock { $0 } == [], "the file is the same")
      try TextFile.write("new, after \(patience)", to: path, mode: 0o600)
      observer(away)
      #expect(ends.withLock { $0 } == [], "nobody refuses it")
      observer(refusal)
      let told = ends.withLock { $0 }
      #expect(told.count == (patience == .zero ? 1 : 0) && told.allSatisfy { $0.contains("have changed") }, "\(told)")
    }
  }
}
