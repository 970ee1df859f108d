import Testing

@testable import ReelhaulPostgres

/// How one batch interprets libpq's replies. The rows are numbers here.
struct ExchangeTests {
  static let steps: [Exchange<Int>.Step] = [
    .prepare(name: "a", statement: 0), .execute(statement: 0), .execute(statement: 1), .sync,
  ]

  func run(_ replies: [Exchange<Int>.Reply]) -> Exchange<Int> {
    var exchange = Exchange<Int>(Self.steps)
    for reply in replies { exchange.receive(reply) }
    return exchange
  }

  @Test("an exchange collects the rows of each statement")
  func collectsTheRowsOfEachStatement() {
    let exchange = run([.rows(0), .end, .rows(1), .end, .rows(2), .end, .synced])
    #expect(exchange.isComplete)
    #expect(exchange.rows == [1, 2])
    #expect(exchange.prepared.map(\.name) == ["a"])
    #expect(exchange.error == nil)
  }

  @Test("an exchange is not complete before the sync")
  func isNotCompleteBeforeTheSync() {
    #expect(!run([.rows(0), .end, .rows(1), .end, .rows(2), .end]).isComplete)
  }

  @Test("an exchange keeps the first error and the statements prepared before it")
  func keepsTheFirstErrorAndWhatWasPreparedBefore() {
    let error = PostgresError(.server, "no", sqlState: "22012")
    let exchange = run([.rows(0), .end, .failed(error), .end, .skipped, .end, .synced])
    #expect(exchange.isComplete)
    #expect(exchange.error?.sqlState == "22012")
    #expect(exchange.error?.statementIndex == 0)
    #expect(exchange.prepared.count == 1)
  }

  @Test("a statement whose preparation failed is not remembered")
  func aFailedPreparationIsNotRemembered() {
    let exchange = run([.failed(PostgresError(.server, "no")), .end, .skipped, .end, .skipped, .end, .synced])
    #expect(exchange.isComplete)
    #expect(exchange.prepared.isEmpty)
    #expect(exchange.error != nil)
  }

  @Test("unexpected replies are errors and do not trap")
  func answersOutOfTurnAreErrorsAndNoTraps() {
    #expect(run([.synced]).error?.code == .protocol)
    #expect(run([.rows(0), .end, .rows(1), .end, .rows(2), .end, .synced, .rows(3)]).error?.code == .protocol)
  }
}
