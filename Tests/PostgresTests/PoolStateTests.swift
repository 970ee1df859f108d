import ReelhaulSystem
import Testing

@testable import ReelhaulPostgres

private func at(_ nanoseconds: Int64) -> BootInstant { BootInstant(nanoseconds: nanoseconds) }

struct PoolStateTests {
  static let refused = PostgresError(.connection, "refused")

  @Test("the pool opens at most its size and serves callers in order")
  func opensNoMoreThanItsSizeAndServesInOrder() {
    var pool = PoolState(size: 2)
    #expect(pool.request(1, deadline: at(9)) == [.connect(after: .zero)])
    #expect(pool.request(2, deadline: at(9)) == [.connect(after: .zero)])
    #expect(pool.request(3, deadline: at(9)) == [])
    #expect(pool.connected(10) == [.lend(10, to: 1)])
    #expect(pool.connected(11) == [.lend(11, to: 2)])
    #expect(pool.returned(10, isUsable: true) == [.lend(10, to: 3)])
    #expect(pool.returned(11, isUsable: true) == [])
    #expect(pool.request(4, deadline: at(9)) == [.lend(11, to: 4)])
  }

  @Test("the connection used last is lent first")
  func theLastUsedIsLentFirst() {
    var pool = PoolState(size: 2)
    _ = pool.request(1, deadline: at(9)) + pool.request(2, deadline: at(9)) + pool.connected(10) + pool.connected(11)
    _ = pool.returned(10, isUsable: true) + pool.returned(11, isUsable: true)
    #expect(pool.request(3, deadline: at(9)) == [.lend(11, to: 3)])
  }

  @Test("a broken connection is replaced for a waiting caller")
  func aBrokenConnectionIsReplacedForWhoeverWaits() {
    var pool = PoolState(size: 1)
    _ = pool.request(1, deadline: at(9)) + pool.connected(10) + pool.request(2, deadline: at(9))
    #expect(pool.returned(10, isUsable: false) == [.close(10), .connect(after: .zero)])
    #expect(pool.connected(11) == [.lend(11, to: 2)])
  }

  @Test("after failures one attempt at a time is made, with growing delays")
  func failuresAreRetriedOneAtATimeAndLater() {
    var pool = PoolState(size: 4)
    _ = pool.request(1, deadline: at(9)) + pool.request(2, deadline: at(9))
    #expect(pool.connectFailed(Self.refused, random: 0.5) == [])
    let first = pool.connectFailed(Self.refused, random: 1)
    #expect(first == [.connect(after: .milliseconds(100))])
    #expect(pool.request(3, deadline: at(9)) == [])
    #expect(pool.connectFailed(Self.refused, random: 1) == [.connect(after: .milliseconds(200))])
    #expect(pool.connected(10) == [.lend(10, to: 1), .connect(after: .zero), .connect(after: .zero)])
  }

  @Test("a caller that waits too long gets the reason of the failed attempts")
  func aWaiterThatExpiresGetsTheReason() {
    var pool = PoolState(size: 1)
    _ = pool.request(1, deadline: at(5)) + pool.request(2, deadline: at(8))
    #expect(pool.nextDeadline == at(5))
    _ = pool.connectFailed(Self.refused, random: 0)
    #expect(pool.expire(now: at(5)) == [.fail(1, Self.refused)])
    #expect(pool.nextDeadline == at(8))
  }

  @Test("a refusal by the server fails all waiting callers at once")
  func aRefusalFailsAllAtOnce() {
    var pool = PoolState(size: 1)
    _ = pool.request(1, deadline: at(5)) + pool.request(2, deadline: at(8))
    let error = PostgresError(.connection, "no", sqlState: "28P01")
    #expect(pool.connectFailed(error, random: 0) == [.fail(1, error), .fail(2, error)])
    #expect(pool.request(3, deadline: at(9)) == [.connect(after: .zero)])
  }

  @Test("a refusal fails nobody whom a session from before can serve in time") func aRefusalBesideSessions() {
    var pool = PoolState(size: 2)
    _ = pool.request(1, deadline: at(5)) + pool.connected(10) + pool.request(2, deadline: at(5))
    let error = PostgresError(.connection, "no", sqlState: "28P01")
    #expect(pool.connectFailed(error, random: 0) == [])
    #expect(pool.returned(10, isUsable: true) == [.lend(10, to: 2)])
    _ = pool.request(3, deadline: at(6)) + pool.connectFailed(error, random: 0)
    #expect(pool.expire(now: at(6)) == [.fail(3, error)])
  }

  @Test("a closed pool closes connections that come back")
  func aClosedPoolClosesReturnedConnections() {
    var pool = PoolState(size: 3)
    _ = pool.request(1, deadline: at(5)) + pool.request(2, deadline: at(5)) + pool.connected(10) + pool.connected(11)
    _ = pool.returned(10, isUsable: true) + pool.request(3, deadline: at(5)) + pool.request(4, deadline: at(5))
    let actions = pool.close()
    #expect(actions.contains { if case .fail(4, _) = $0 { true } else { false } })
    #expect(pool.connected(12) == [.close(12)])
    #expect(pool.returned(10, isUsable: true) == [.close(10)])
    #expect(pool.lent == [11])
  }

  @Test("the number of waiting callers is limited")
  func theQueueIsBounded() {
    var pool = PoolState(size: 1, waiterLimit: 1)
    _ = pool.request(1, deadline: at(5))
    let answer = pool.request(2, deadline: at(5))
    #expect(answer.contains { if case .fail(2, let error) = $0 { error.code == .unavailable } else { false } })
  }

  @Test("under random events the pool never exceeds its size, and no caller waits beside an idle connection")
  func holdsItsInvariantsUnderRandomEvents() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      var pool = PoolState(size: Int.random(in: 1...4, using: &random))
      var next = 0
      for _ in 0..<200 {
        next += 1
        switch Int.random(in: 0..<6, using: &random) {
        case 0, 1: _ = pool.request(next, deadline: .distantFuture)
        case 2 where pool.connecting > 0: _ = pool.connected(next)
        case 3 where pool.connecting > 0: _ = pool.connectFailed(Self.refused, random: 0.5)
        case 4: if let lent = pool.lent.randomElement() { _ = pool.returned(lent, isUsable: Bool.random()) }
        case 5: if let waiter = pool.waiters.first { _ = pool.cancel(waiter.id) }
        default: if let idle = pool.idle.first { _ = pool.lost(idle) }
        }
        #expect(pool.idle.count + pool.lent.count + pool.connecting <= pool.size)
        #expect(pool.idle.isEmpty || pool.waiters.isEmpty)
        #expect(pool.waiters.isEmpty || pool.connecting > 0 || pool.lent.count == pool.size)
      }
    }
  }
}
