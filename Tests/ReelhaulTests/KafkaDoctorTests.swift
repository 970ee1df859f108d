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

  @Test("commands that were dropped unread are told, also if none waits") func dropped() {
    func findings(_ position: GroupObserver.Position) -> [String] {
      KafkaDoctor.commands([position]).map { finding in
        "\(finding.status) \(finding.message.split(separator: " ").prefix(3).joined(separator: " "))"
      }
    }
    #expect(findings(.init(committed: 7)) == ["ok all are applied"])
    #expect(findings(.init(committed: 7, lost: 3)) == ["warning 3 were dropped"])
    #expect(findings(.init(committed: 7, unread: 2, lost: 3)) == ["warning 3 were dropped", "warning 2 wait, and"])
  }
}
