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
}
