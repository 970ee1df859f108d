import TaskCore
import Testing

@testable import TransferEngine

@Suite struct SyncPolicyTests {
  private static let second: Int64 = 1_000_000_000
  private var policy: SyncPolicy {
    SyncPolicy(bytes: 1000, interval: .seconds(2), exposure: .seconds(3), recorded: 100, now: 0)
  }

  @Test("a sync is due for enough bytes at once, and for fewer after the interval")
  func due() {
    var policy = policy
    #expect(!policy.isDue(unsynced: 0, now: 9 * Self.second))
    #expect(!policy.isDue(unsynced: 999, now: 2 * Self.second - 1))
    #expect(policy.isDue(unsynced: 1000, now: 0))
    #expect(policy.isDue(unsynced: 1, now: 2 * Self.second))
    policy.began(now: 2 * Self.second)
    #expect(!policy.isDue(unsynced: 1, now: 4 * Self.second - 1))
  }

  @Test("nothing more is received once too many bytes wait for too long, until they are recorded")
  func exposure() {
    var policy = policy
    #expect(!policy.mustWait(written: 1099, now: 3 * Self.second))
    #expect(!policy.mustWait(written: 1100, now: 3 * Self.second - 1))
    #expect(policy.mustWait(written: 1100, now: 3 * Self.second))
    policy.recorded(600, since: Self.second)
    #expect(!policy.mustWait(written: 1599, now: 9 * Self.second))
    #expect(!policy.mustWait(written: 1600, now: 4 * Self.second - 1))
    #expect(policy.mustWait(written: 1600, now: 4 * Self.second))
  }

  @Test("a run stands still when nothing arrives for a fifth of a second")
  func stall() {
    var policy = policy
    policy.arrived(now: 10_000_000)
    #expect(policy.stallsAt == 210_000_000)
    policy.arrived(now: 50_000_000)
    #expect(policy.stallsAt == 250_000_000)
  }

  @Test("bytes that come in lumps are no stalls, and a stall is no reason for the next one")
  func lumps() {
    var policy = policy
    var stalls = 0
    for lump: Int64 in 1...60 {
      // A hundred packets, and nothing for the rest of the second.
      for packet: Int64 in 0..<100 {
        let now = lump * Self.second + packet * 100_000
        if policy.stallsAt.map({ $0 <= now }) ?? false { stalls += 1 }
        policy.arrived(now: now)
      }
    }
    #expect(stalls == 1, "only the first pause looks like one")
    #expect(policy.stallsAt == nil)
    // The bytes flow for a minute: what was is forgotten.
    for packet: Int64 in 0..<6000 { policy.arrived(now: 61 * Self.second + packet * 10_000_000) }
    #expect(policy.stallsAt == 61 * Self.second + 59_990_000_000 + 200_000_000)
  }
}

@Suite struct RetryBudgetTests {
  @Test("the wait doubles with each failure in a row, up to the limit of tries")
  func doubles() {
    let failure = TaskFailure(code: .stalled, message: "", class: .retry)
    var budget = RetryBudget(limit: 3, firstMilliseconds: 100)
    #expect((0..<4).map { _ in budget.pause(after: failure) } == [100, 200, 400, nil])
    budget.reset()
    #expect(budget.pause(after: failure) == 100)
  }

  @Test(
    "a server's Retry-After is kept within a run up to two seconds",
    arguments: [(1, 2000), (2, 4000), (3, nil)] as [(Int, Int64?)])
  func serversWord(seconds: Int, milliseconds: Int64?) {
    var budget = RetryBudget(limit: 3, firstMilliseconds: 100)
    let failure = TaskFailure(code: .stalled, message: "", class: .retry, retryAfter: seconds)
    #expect(budget.pause(after: failure) == milliseconds)
  }
}
