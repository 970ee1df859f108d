import ReelhaulSystem
import Testing

@testable import ReelhaulKafka

@Suite struct GroupExchangeTests {
  private let now = BootInstant.now
  private let ranges = [KafkaBatch.Range(partition: TopicPartition("t", 0), next: 5, epoch: 1)]

  private func later(_ duration: Duration) -> BootInstant { now.advanced(by: duration) }

  /// The number of a question that is asked because a commit waits.
  private func ask(_ exchange: inout GroupExchange) throws -> Int {
    let number = exchange.question(isAwaited: true, now: now)
    return try #require(number)
  }

  @Test("a question is asked only if a commit waits or if it was requested")
  func asksOnlyWhereSomethingWaits() {
    var exchange = GroupExchange()
    #expect(exchange.question(isAwaited: false, now: now) == nil)
    exchange.askSoon()
    #expect(exchange.question(isAwaited: false, now: now) != nil)
  }

  @Test("only one request is under way at a time")
  func oneRequestIsOnItsWay() throws {
    var exchange = GroupExchange()
    let question = try ask(&exchange)
    exchange.askSoon()
    #expect(exchange.question(isAwaited: true, now: now) == nil)
    #expect(exchange.nextCommit == nil)
    #expect(exchange.answered(question) == true)
    let commit = exchange.commit(ranges, now: now)
    #expect(exchange.question(isAwaited: true, now: now) == nil)
    #expect(exchange.committed(commit) == ranges)
    #expect(exchange.question(isAwaited: false, now: now) != nil, "what was asked for meanwhile")
  }

  @Test("answers to requests that are no longer awaited change nothing")
  func lateAnswersChangeNothing() throws {
    var exchange = GroupExchange()
    let first = try ask(&exchange)
    exchange.dropQuestion()
    let second = try ask(&exchange)
    #expect(exchange.answered(first) == false)
    #expect(exchange.answered(second) == true)
    #expect(exchange.answered(second) == false)
    let commit = exchange.commit(ranges, now: now)
    exchange.dropQuestion()
    #expect(exchange.committed(second) == nil)
    #expect(exchange.committed(commit) == ranges, "a new share does not touch a commit")
    #expect(exchange.committed(commit) == nil)
  }

  @Test("a commit without an answer is given up after its patience")
  func aCommitWithoutAnAnswerIsGivenUp() throws {
    var exchange = GroupExchange()
    #expect(try exchange.answered(ask(&exchange)) == true)
    let commit = exchange.commit(ranges, now: now)
    #expect(exchange.expire(now: later(.seconds(89))) == false)
    #expect(exchange.expire(now: later(.seconds(90))) == true)
    #expect(exchange.committed(commit) == nil)
    #expect(exchange.question(isAwaited: true, now: later(.seconds(90))) != nil)
  }

  @Test("after an error the next request waits", arguments: [(true, Duration.milliseconds(50)), (false, .seconds(5))])
  func restsAfterAnError(mayPass: Bool, rest: Duration) throws {
    var exchange = GroupExchange()
    #expect(try exchange.answered(ask(&exchange)) == true)
    exchange.failed(mayPass: mayPass, now: now)
    #expect(exchange.nextCommit == later(rest))
    #expect(exchange.question(isAwaited: true, now: later(rest - .milliseconds(1))) == nil)
    #expect(exchange.question(isAwaited: true, now: later(rest)) != nil)
  }
}
