import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskStore
import Testing
import WorkerCore

@Suite struct OutageTests {
  private let refused = StoreError.unavailable("the role is not permitted to log in", cause: "28000")

  @Test("the first failure is a warning, and so is the first of the next outage")
  func warnsOfEachOutageOnce() {
    var outage = Outage()
    for _ in 0..<2 {
      #expect(!outage.recovered())
      #expect(outage.failed(refused, now: at(0)) == .warning)
      #expect(outage.failed(refused, now: at(3_600_000)) == .debug)
      #expect(outage.recovered())
    }
  }

  @Test("another cause is a warning, whatever the text")
  func warnsOfAnotherCause() {
    var outage = Outage()
    #expect(outage.failed(refused, now: at(0)) == .warning)
    #expect(outage.failed(StoreError.failed("permission denied for task", cause: "42501"), now: at(1)) == .warning)
    #expect(outage.failed(StoreError.failed("permission denied for worker", cause: "42501"), now: at(2)) == .debug)
    #expect(outage.failed(PostgresError(.connection, "refused"), now: at(3)) == .warning)
    #expect(outage.failed(KafkaError(code: .timedOut, message: "late"), now: at(4)) == .warning)
    #expect(outage.failed(KafkaError(code: .transport, message: "away"), now: at(5)) == .warning)
    #expect(outage.failed(OwnershipLost(), now: at(6)) == .warning)
  }

  @Test("causes that alternate are told once a minute each, and the one that stays in the end")
  func staysQuietAboutCausesThatAlternate() {
    var outage = Outage()
    let away = StoreError.unavailable("nobody answers", cause: "connection")
    #expect(outage.failed(refused, now: at(0)) == .warning)
    #expect(outage.failed(away, now: at(1000)) == .warning)
    for second in 2..<60 { #expect(outage.failed(second % 2 == 0 ? refused : away, now: at(second * 1000)) == .debug) }
    #expect(outage.failed(refused, now: at(60_000)) == .warning)
    #expect(outage.failed(refused, now: at(61_000)) == .debug)
  }
}
