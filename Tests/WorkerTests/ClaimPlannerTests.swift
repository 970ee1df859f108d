import ReelhaulSystem
import TaskStore
import Testing
import WorkerCore

@Suite struct ClaimPlannerTests {
  @Test("free places are claimed with one call at a time")
  func claimsWhatIsFreeOneCallAtATime() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    #expect(planner.next(free: 32, now: at(0)) == .claim(32))
    #expect(planner.next(free: 32, now: at(1)) == .wait(until: nil))
    planner.claimed(32, of: 32, now: at(2))
    #expect(planner.next(free: 0, now: at(2)) == .wait(until: nil))
    #expect(planner.next(free: 8, now: at(2)) == .claim(8), "a full claim suggests more")
  }

  @Test("a claim is limited to the batch size")
  func bounded() {
    var planner = ClaimPlanner(concurrency: 4000, batch: 500, seed: 1)
    #expect(planner.next(free: 4000, now: at(0)) == .claim(500))
  }

  @Test("while the backlog is empty, claims become rarer")
  func asksEverMoreRarelyWhenEmpty() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    var now = at(0)
    var waits: [Duration] = []
    for _ in 0..<12 {
      #expect(planner.next(free: 32, now: now) == .claim(32))
      planner.claimed(0, of: 32, now: now)
      guard case .wait(let until?) = planner.next(free: 32, now: now) else {
        Issue.record("an empty backlog is not asked again at once")
        return
      }
      waits.append(now.duration(to: until))
      now = until
    }
    #expect(waits.allSatisfy { $0 >= .microseconds(2500) && $0 <= .milliseconds(250) })
    #expect(waits[0] <= .milliseconds(5))
    #expect(waits.suffix(3).allSatisfy { $0 >= .milliseconds(125) })
    #expect(Set(waits.suffix(3)).count > 1, "jittered")
  }

  @Test("while tasks are ready that a claim does not find, it looks again soon")
  func goesOnThroughWithdrawnQueues() {
    var planner = ClaimPlanner(concurrency: 8, seed: 1)
    var now = at(0)
    for _ in 0..<20 {
      _ = planner.next(free: 8, now: now)
      planner.claimed(0, of: 8, areReady: true, now: now)
      guard case .wait(let until?) = planner.next(free: 8, now: now) else {
        Issue.record("it waits a moment")
        return
      }
      #expect(until <= now + .milliseconds(25))
      now = until
    }
  }

  @Test("the more workers there are, the more rarely an idle one asks, and the longer tasks are left to the others")
  func manyWorkers() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    planner.idlePause = .seconds(1)
    var now = at(0)
    for _ in 0..<12 {
      _ = planner.next(free: 32, now: now)
      planner.claimed(0, of: 32, now: now)
      guard case .wait(let until?) = planner.next(free: 32, now: now) else { break }
      now = until
    }
    #expect(now > at(3000))
    let demand = Demand(ready: 8, running: 32, workers: 2)
    #expect(planner.part(of: 8, free: 8, demand, now: now) == 0)
    _ = planner.next(free: 8, now: now)
    planner.claimed(0, of: 8, leavesTasks: true, now: now)
    #expect(planner.part(of: 8, free: 8, demand, now: now + .milliseconds(1_100)) == 0)
    #expect(planner.part(of: 8, free: 8, demand, now: now + .milliseconds(1_300)) == 8)
  }

  @Test("a claim asks first, but not while more waits than it can take, and never when it is repeated")
  func looksFirst() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    #expect(planner.looksFirst)
    _ = planner.next(free: 32, now: at(0))
    planner.claimed(24, of: 24, now: at(0))
    #expect(!planner.looksFirst)
    _ = planner.next(free: 8, now: at(10))
    planner.claimed(7, of: 8, now: at(10))
    #expect(planner.looksFirst)
    _ = planner.next(free: 32, now: at(1000))
    planner.failed(now: at(1000))
    #expect(!planner.looksFirst, "the claim may have been made")
  }

  @Test("a claim takes the worker's part of what runs and waits, in eighths of its concurrency")
  func part() {
    let planner = ClaimPlanner(concurrency: 64, seed: 1)
    func part(free: Int, ready: Int, running: Int, workers: Int) -> Int {
      planner.part(of: free, free: free, Demand(ready: ready, running: running, workers: workers), now: at(0))
    }
    #expect(part(free: 64, ready: 60, running: 0, workers: 1) == 64)
    #expect(part(free: 64, ready: 60, running: 0, workers: 2) == 32)
    #expect(part(free: 32, ready: 28, running: 32, workers: 2) == 0)
    #expect(part(free: 64, ready: 28, running: 32, workers: 2) == 32)
    #expect(part(free: 64, ready: 1, running: 0, workers: 10) == 8)
    #expect(part(free: 64, ready: 1000, running: 0, workers: 3) == 64)
    #expect(part(free: 64, ready: 0, running: 64, workers: 2) == 64, "the claim switches the lane off")
    #expect(planner.part(of: 64, free: 64, nil, now: at(0)) == 0)
  }

  @Test("what others do not take in time is for all, and a worker that was left alone does not wait again soon")
  func patience() {
    var planner = ClaimPlanner(concurrency: 64, seed: 1)
    let demand = Demand(ready: 28, running: 32, workers: 2)
    for time in stride(from: 0, to: 300, by: 25) {
      #expect(planner.next(free: 32, now: at(time)) == .claim(32))
      #expect(planner.part(of: 32, free: 32, demand, now: at(time)) == 0)
      planner.claimed(0, of: 32, leavesTasks: true, now: at(time))
      planner.hint()
      #expect(planner.next(free: 32, now: at(time)) == .wait(until: at(time + 25)), "not even after a hint")
    }
    #expect(planner.next(free: 32, now: at(300)) == .claim(32))
    #expect(planner.part(of: 32, free: 32, demand, now: at(300)) == 32)
    planner.claimed(28, of: 32, now: at(301))
    #expect(planner.part(of: 4, free: 4, demand, now: at(310)) == 4)
    #expect(planner.part(of: 32, free: 32, demand, now: at(10_302)) == 0)
  }

  @Test("a hint ends the wait")
  func aHintEndsTheWait() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    _ = planner.next(free: 32, now: at(0))
    planner.claimed(0, of: 32, now: at(1))
    planner.hint()
    #expect(planner.next(free: 32, now: at(1)) == .claim(32))
  }

  @Test("a hint during a claim is used once")
  func aHintDuringAClaimIsNotLost() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    _ = planner.next(free: 32, now: at(0))
    planner.hint()
    planner.claimed(0, of: 32, now: at(1))
    #expect(planner.next(free: 32, now: at(1)) == .claim(32))
    planner.claimed(0, of: 32, now: at(2))
    #expect(planner.next(free: 32, now: at(2)) != .claim(32), "and is used once")
  }

  @Test("after a partly filled claim the next one waits a moment")
  func aPartlyFilledClaimWaitsAMoment() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    _ = planner.next(free: 32, now: at(0))
    planner.claimed(5, of: 32, now: at(1))
    #expect(planner.next(free: 27, now: at(1)) == .wait(until: at(6)))
    #expect(planner.next(free: 27, now: at(6)) == .claim(27))
  }

  @Test("under load several free places are gathered for a claim")
  func underLoadItGathersPlaces() {
    var planner = ClaimPlanner(concurrency: 64, seed: 1)
    _ = planner.next(free: 64, now: at(0))
    planner.claimed(64, of: 64, now: at(10))
    #expect(planner.next(free: 1, now: at(11)) == .wait(until: at(15)))
    #expect(planner.next(free: 8, now: at(11)) == .claim(8))
    planner.claimed(8, of: 8, now: at(12))
    #expect(planner.next(free: 1, now: at(17)) == .claim(1), "but not for long")
  }

  @Test("failed claims back off")
  func failuresBackOff() {
    var planner = ClaimPlanner(concurrency: 32, seed: 1)
    _ = planner.next(free: 32, now: at(0))
    planner.failed(now: at(0))
    guard case .wait(let until?) = planner.next(free: 32, now: at(0)) else {
      Issue.record("a store in trouble is not asked again at once")
      return
    }
    #expect(planner.next(free: 32, now: until) == .claim(32))
  }
}
