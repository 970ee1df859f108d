import ReelhaulKafka
import TaskAdvice
import Testing

@testable import reelhaul

@Suite struct KafkaDoctorTests {
  @Test("what the cluster does not answer is unreachable, and what it refuses is skipped")
  func onlyARefusalIsSkipped() {
    func status(_ code: KafkaError.Code) -> Finding.Status {
      KafkaDoctor.unread("commands", "their number", KafkaError(code: code, message: "no")).status
    }
    let unauthorized = KafkaError.Code(rawValue: 29)
    #expect([.timedOut, .transport].map(status) == [.unreachable, .unreachable])
    #expect([unauthorized, .messageTooLarge].map(status) == [.skipped, .failed])
  }
}
