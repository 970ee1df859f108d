import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

@testable import WorkerCore

@Suite struct LeaseMachineTests {
  private let first = WorkerID(rawValue: 1)
  private let second = WorkerID(rawValue: 2)

  /// A lease of 15 s: renewed every 500 ms, fenced after 10 s.
  private func machine() -> LeaseMachine {
    LeaseMachine(timing: .init(lease: .seconds(15), renewal: .milliseconds(500)), seed: 1)
  }

  private func held() -> LeaseMachine {
    var machine = machine()
    _ = machine.start()
    _ = machine.registered(first, sentAt: at(0), now: at(5))
    return machine
  }

  @Test("a lease is registered and renewed with one request at a time")
  func registersAndRenews() {
    var machine = machine()
    #expect(machine.start() == [.register])
    #expect(machine.start() == [])
    #expect(machine.registered(first, sentAt: at(0), now: at(5)) == [.begin(first, fence: at(10_000))])
    #expect(machine.nextTick == at(500))
    #expect(machine.tick(now: at(499)) == [])
    #expect(machine.tick(now: at(500)) == [.renew(first)])
    #expect(machine.nextTick == at(10_000), "one renewal in flight; only the fence can come before its answer")
    #expect(machine.renewed(first, sentAt: at(500), isAlive: true, now: at(503)) == [.extend(first, fence: at(10_500))])
    #expect(machine.nextTick == at(1000))
  }

  @Test("the fence counts from the sending of the last successful renewal")
  func theFenceCountsFromTheSendingOfTheLastSuccess() {
    var machine = held()
    _ = machine.tick(now: at(500))
    #expect(
      machine.renewed(first, sentAt: at(500), isAlive: true, now: at(9000)) == [.extend(first, fence: at(10_500))],
      "a late answer extends the lease from the time when the renewal was sent")
  }

  @Test("without an answer the worker stops at two thirds of its lease")
  func stopsAtTwoThirdsWithoutAnAnswer() {
    var machine = held()
    #expect(machine.tick(now: at(500)) == [.renew(first)])
    #expect(machine.tick(now: at(9999)) == [])
    #expect(machine.tick(now: at(10_000)) == [.abandon(first), .register])
    #expect(machine.renewed(first, sentAt: at(500), isAlive: true, now: at(10_001)) == [], "too late to matter")
    #expect(machine.registered(second, sentAt: at(10_000), now: at(10_004)) == [.begin(second, fence: at(20_000))])
    #expect(machine.worker == second)
  }

  @Test("a worker that wakes up after its fence abandons its runs before anything else")
  func looksAtTheClockBeforeAnythingWhenWoken() {
    // Stopped from 600 to 30,000 ms with a successful answer waiting in the socket.
    var machine = held()
    _ = machine.tick(now: at(500))
    #expect(
      machine.renewed(first, sentAt: at(500), isAlive: true, now: at(30_000)) == [.abandon(first), .register])
    // The worker wakes between the fence and the time to which the answer would move it. Writes in between were refused
    // and have been given up, so the lease must end.
    machine = held()
    _ = machine.tick(now: at(500))
    #expect(machine.renewed(first, sentAt: at(500), isAlive: true, now: at(10_000)) == [.abandon(first), .register])
    machine = held()
    _ = machine.tick(now: at(500))
    _ = machine.renewed(first, sentAt: at(500), isAlive: true, now: at(9999))
    #expect(machine.fencePassed(first, now: at(10_001)) == [.abandon(first), .register])
    #expect(machine.fencePassed(first, now: at(10_002)) == [])
    machine = held()
    #expect(machine.renewNow(now: at(30_000)) == [.abandon(first), .register])
    machine = held()
    _ = machine.tick(now: at(500))
    #expect(machine.renewalFailed(first, now: at(30_000)) == [.abandon(first), .register])
  }

  @Test("a lease that the store has ended is abandoned at once")
  func aLeaseThatIsGoneIsLeftAtOnce() {
    var machine = held()
    _ = machine.tick(now: at(500))
    #expect(machine.renewed(first, sentAt: at(500), isAlive: false, now: at(502)) == [.abandon(first), .register])
  }

  @Test("a worker without a new lease leaves its commands to others")
  func leavesItsCommandsToOthersWhereNoLeaseBegins() {
    var machine = held()
    #expect(machine.tick(now: at(10_000)) == [.abandon(first), .register])
    #expect(machine.nextTick == at(15_000), "the registration hangs; for others the lease lasts until then")
    #expect(machine.tick(now: at(14_999)) == [])
    #expect(machine.tick(now: at(15_000)) == [.retreat])
    #expect(machine.nextTick == nil, "once")
    #expect(machine.registrationFailed(now: at(20_000)) == [])
    #expect(machine.tick(now: try! #require(machine.nextTick)) == [.register])
    #expect(machine.registered(second, sentAt: at(30_000), now: at(30_001)) == [.begin(second, fence: at(40_000))])

    machine = held()
    _ = machine.tick(now: at(10_000))
    #expect(machine.registrationFailed(now: at(14_990)) == [])
    #expect(machine.tick(now: at(16_000)) == [.retreat, .register], "registrations are refused")

    machine = held()
    _ = machine.tick(now: at(10_000))
    _ = machine.registered(second, sentAt: at(10_000), now: at(10_010))
    #expect(machine.nextTick == at(10_500))
    #expect(machine.tick(now: at(15_000)) == [.renew(second)], "a new lease began in time")
  }

  @Test("failed renewals are repeated until the fence")
  func failedRenewalsAreRepeatedUntilTheFence() {
    var machine = held()
    var now = at(500)
    var renewals = 0
    while true {
      let actions = machine.tick(now: now)
      if actions == [.abandon(first), .register] { break }
      #expect(actions == [.renew(first)])
      renewals += 1
      now = now + .milliseconds(10)
      #expect(machine.renewalFailed(first, now: now) == [])
      guard let next = machine.nextTick else { break }
      #expect(next > now && next <= now + .milliseconds(500))
      now = next
    }
    #expect(now == at(10_000))
    #expect(renewals > 15)
  }

  @Test("a signal fetches intents with an extra renewal")
  func anIntentIsFetchedAtOnce() {
    var machine = held()
    #expect(machine.renewNow(now: at(100)) == [.renew(first)])
    #expect(machine.renewNow(now: at(101)) == [], "one in flight")
    #expect(
      machine.renewed(first, sentAt: at(100), isAlive: true, now: at(103))
        == [.extend(first, fence: at(10_100)), .renew(first)],
      "the one in flight may have been carried out before the intent was written")
    #expect(
      machine.renewed(first, sentAt: at(103), isAlive: true, now: at(105)) == [.extend(first, fence: at(10_103))])
  }

  @Test("a registration whose answer is too late is repeated")
  func aLateRegistrationIsMadeAgain() {
    var machine = machine()
    _ = machine.start()
    #expect(machine.registered(first, sentAt: at(0), now: at(10_000)) == [])
    let next = try! #require(machine.nextTick)
    #expect(machine.tick(now: next) == [.register])
  }

  @Test("nothing happens after the end")
  func nothingFollowsTheEnd() {
    var machine = held()
    _ = machine.tick(now: at(500))
    machine.end()
    #expect(machine.nextTick == nil)
    #expect(machine.tick(now: at(60_000)) == [])
    #expect(machine.renewed(first, sentAt: at(500), isAlive: false, now: at(501)) == [])
  }

  /// While the machine lets tasks run, the store's lease is valid, whatever is delayed, lost or stopped.
  @Test("with random delays and losses the worker never acts after its lease", arguments: 0..<200 as Range<UInt64>)
  func neverActsAfterItsLease(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var machine = LeaseMachine(timing: .init(lease: .seconds(15), renewal: .milliseconds(500)), seed: seed)
    var now = at(0)
    var nextID: Int32 = 0
    var leaseUntil: [WorkerID: BootInstant] = [:]
    var fence: (worker: WorkerID, until: BootInstant)?
    var answers: [(at: BootInstant, deliver: (inout LeaseMachine, BootInstant) -> [LeaseMachine.Action])] = []
    var pending = machine.start()

    for _ in 0..<400 {
      while !pending.isEmpty {
        let action = pending.removeFirst()
        let sentAt = now
        let arrives = sentAt + .milliseconds(Int.random(in: 0...4000, using: &random))
        let back = arrives + .milliseconds(Int.random(in: 0...4000, using: &random))
        let isLost = Int.random(in: 0..<4, using: &random) == 0
        switch action {
        case .register:
          nextID += 1
          let worker = WorkerID(rawValue: nextID)
          leaseUntil[worker] = arrives + .seconds(15)
          answers.append(
            isLost
              ? (back, { $0.registrationFailed(now: $1) }) : (back, { $0.registered(worker, sentAt: sentAt, now: $1) }))
        case .renew(let worker):
          let isAlive = leaseUntil[worker].map { $0 > arrives } ?? false
          if isAlive { leaseUntil[worker] = arrives + .seconds(15) }
          answers.append(
            isLost
              ? (back, { $0.renewalFailed(worker, now: $1) })
              : (back, { $0.renewed(worker, sentAt: sentAt, isAlive: isAlive, now: $1) }))
        case .begin(let worker, let until): fence = (worker, until)
        case .extend(let worker, let until):
          #expect(fence?.worker == worker)
          fence = (worker, until)
        case .abandon(let worker):
          #expect(fence?.worker == worker)
          fence = nil
        case .retreat: #expect(fence == nil && leaseUntil.values.allSatisfy { $0 <= now || machine.worker == nil })
        }
      }
      if let fence { #expect(fence.until <= leaseUntil[fence.worker]!, "fenced before the store's lease ends") }
      let next = min(machine.nextTick ?? at(.max / 1_000_000), answers.map(\.at).min() ?? at(.max / 1_000_000))
      now = max(now, next)
      if Int.random(in: 0..<20, using: &random) == 0 {
        now = now + .milliseconds(Int.random(in: 0...40_000, using: &random))  // SIGSTOP
      }
      if let due = answers.firstIndex(where: { $0.at <= now }), Bool.random(using: &random) {
        pending += answers.remove(at: due).deliver(&machine, now)
      } else {
        pending += machine.tick(now: now)
      }
    }
  }
}
