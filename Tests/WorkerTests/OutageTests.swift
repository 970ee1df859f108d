import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore
import Testing
import WorkerCore

@Suite struct OutageTests {
  private let refused = StoreError.unavailable("the role is not permitted to log in", cause: "28000")

  /// The levels at which failures at these milliseconds are logged.
  private func levels(_ failures: [(error: any Error, time: Int)], _ outage: inout Outage) -> [LogLevel] {
    failures.map { outage.failed($0.error, now: at($0.time)) }
  }

  private func levels(_ failures: [(error: any Error, time: Int)]) -> [LogLevel] {
    var outage = Outage()
    return levels(failures, &outage)
  }

  @Test("the first failure is a warning, and so is the first of the next outage")
  func warnsOfEachOutageOnce() {
    var outage = Outage()
    for _ in 0..<2 {
      let hadFailed = outage.recovered()
      #expect(!hadFailed)
      let told = levels([(refused, 0), (refused, 3_600_000)], &outage)
      #expect(told == [.warning, .debug])
      let hasFailed = outage.recovered()
      #expect(hasFailed)
    }
  }

  @Test("another cause is a warning, whatever the text")
  func warnsOfAnotherCause() {
    let told = levels([
      (refused, 0), (StoreError.failed("permission denied for task", cause: "42501"), 1),
      (StoreError.failed("permission denied for worker", cause: "42501"), 2),
      (PostgresError(.connection, "refused"), 3), (KafkaError(code: .timedOut, message: "late"), 4),
      (KafkaError(code: .transport, message: "away"), 5), (OwnershipLost(), 6),
    ])
    #expect(told == [.warning, .warning, .debug, .warning, .warning, .warning, .warning])
  }

  @Test("causes that alternate are told once a minute each, and the one that stays in the end")
  func staysQuietAboutCausesThatAlternate() {
    let away = StoreError.unavailable("nobody answers", cause: "connection")
    var outage = Outage()
    let first = levels((0..<60).map { ($0 % 2 == 0 ? refused : away, $0 * 1000) }, &outage)
    #expect(first == [.warning, .warning] + [LogLevel](repeating: .debug, count: 58))
    let later = levels([(refused, 60_000), (refused, 61_000)], &outage)
    #expect(later == [.warning, .debug])
  }
}
