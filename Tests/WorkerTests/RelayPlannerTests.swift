import ReelhaulSystem
import Testing
import WorkerCore

@Suite struct RelayPlannerTests {
  /// A leader whose term may be used until 4 s.
  private func leader() -> RelayPlanner {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(0))
    planner.fenced()
    return planner
  }

  private func publish(readingAhead: Int?, until: BootInstant = at(4000)) -> RelayPlanner.Decision {
    .publish(readingAhead: readingAhead, until: until)
  }

  @Test("a follower asks for the lead about once a second")
  func aFollowerTriesAboutOnceASecond() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    #expect(planner.next(now: at(0)) == .lead(seconds: RelayPlanner.term))
    planner.led(false, sentAt: at(0), now: at(2))
    guard case .wait(let until) = planner.next(now: at(2)) else {
      Issue.record("the lead is asked for without pause")
      return
    }
    #expect(until >= at(502) && until <= at(1002))
    #expect(planner.next(now: until) == .lead(seconds: RelayPlanner.term))
    planner.followerTries = .seconds(4)
    planner.led(false, sentAt: until, now: until)
    #expect(planner.next(now: until + .seconds(1)) != .lead(seconds: RelayPlanner.term))
  }

  @Test("a leader reads, publishes and renews its term")
  func aLeaderReadsThenPublishesAndRenewsItsTerm() {
    var planner = leader()
    #expect(planner.next(now: at(2)) == .read(rows: 200))
    planner.read(rows: 3, events: 120, of: 200, now: at(3))
    #expect(planner.next(now: at(3)) == publish(readingAhead: nil), "no more rows wait")
    planner.published()
    planner.hint()
    let gathered = at(3) + RelayPlanner.gathering(after: 120)
    #expect(planner.next(now: at(4)) == .wait(until: gathered))
    #expect(planner.next(now: gathered) == .read(rows: 200))
    #expect(planner.next(now: at(2000)) == .lead(seconds: RelayPlanner.term))
  }

  @Test("events gather longer the more there were")
  func theMoreEventsThereWereTheLongerTheyGather() {
    func gathering(_ events: Int) -> Duration {
      var planner = leader()
      planner.read(rows: 1, events: events, of: 200, now: at(0))
      planner.published()
      guard case .wait(let until) = planner.next(now: at(0)) else { return .zero }
      return at(0).duration(to: until)
    }
    #expect(gathering(1) < gathering(100) && gathering(100) < gathering(1000))
    #expect(gathering(7000) == gathering(1000), "it stays too short for people to notice")
  }

  @Test("if there is more, the next round is read while the last is published")
  func whileThereIsMoreTheNextRoundIsReadDuringTheLast() {
    var planner = leader()
    planner.read(rows: 200, events: 8000, of: 200, now: at(3))
    #expect(planner.next(now: at(3)) == publish(readingAhead: 200))
    planner.published()
    planner.read(rows: 7, events: 140, of: 200, now: at(4))
    #expect(planner.next(now: at(4)) == publish(readingAhead: nil))
  }

  @Test("nothing is read ahead of a row that was cut")
  func nothingIsReadAheadOfARowThatWasCut() {
    var planner = leader()
    planner.read(rows: 200, events: 30, of: 200, isCut: true, now: at(3))
    #expect(planner.next(now: at(3)) == publish(readingAhead: nil))
    planner.published()
    #expect(planner.next(now: at(4)) == .read(rows: 200), "the rest of the row, at once")
    planner.read(rows: 200, events: 8000, of: 200, now: at(5))
    #expect(planner.next(now: at(5)) == publish(readingAhead: 200))
  }

  @Test("after a round that is full of bytes the next one is read at once")
  func aRoundThatIsFullOfBytes() {
    var planner = leader()
    planner.read(rows: 40, events: 40, of: 200, hasMore: true, now: at(3))
    #expect(planner.next(now: at(3)) == publish(readingAhead: 200))
    planner.published()
    planner.read(rows: 40, events: 40, of: 200, now: at(4))
    #expect(planner.next(now: at(4)) == publish(readingAhead: nil))
  }

  @Test("a round from a term that is over is not published")
  func aRoundOfATermThatIsOverIsNotPublished() {
    var planner = leader()
    planner.read(rows: 3, events: 120, of: 200, now: at(1))
    planner.led(true, sentAt: at(2000), now: at(2002))
    #expect(planner.next(now: at(2002)) == publish(readingAhead: nil, until: at(6000)), "the term went on")
    planner.led(true, sentAt: at(4003), now: at(6002))
    #expect(planner.next(now: at(6002)) == .fence(until: at(8003)), "another may have led since")
    planner.fenced()
    #expect(planner.next(now: at(6002)) == .read(rows: 200), "and have published it")
  }

  @Test("an answer that comes after its term gives no lead")
  func anAnswerAfterTheTermIsNoLead() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(4000))
    guard case .wait = planner.next(now: at(4000)) else {
      Issue.record("it relays")
      return
    }
  }

  @Test("an empty outbox is read less often until a hint")
  func backsOffWhenEmptyUntilHinted() {
    var planner = leader()
    for _ in 0..<10 { planner.read(rows: 0, events: 0, of: 100, now: at(100)) }
    guard case .wait(let until) = planner.next(now: at(100)) else {
      Issue.record("an empty outbox is not read without pause")
      return
    }
    #expect(until >= at(200) && until <= at(300))
    planner.hint()
    guard case .read = planner.next(now: at(100)) else {
      Issue.record("hinted")
      return
    }
  }

  @Test("a failed round is read again")
  func aFailedRoundIsReadAgain() {
    var planner = leader()
    planner.read(rows: 3, events: 120, of: 200, now: at(1))
    planner.failed(now: at(2))
    #expect(planner.next(now: at(100)) == .read(rows: 100))
  }

  /// Neither hints, of which a busy fleet has many, nor the renewal at half the term lets it try again at once.
  @Test("after failures the relay waits longer and longer", arguments: [3, 3000]) func afterAFailureItPauses(
    failure: Int
  ) {
    var planner = leader()
    var now = at(failure)
    var pauses: [Duration] = []
    for _ in 0..<6 {
      planner.failed(now: now)
      planner.hint()
      guard case .wait(let until) = planner.next(now: now) else {
        Issue.record("it continues at once")
        return
      }
      pauses.append(now.duration(to: until))
      now = until
      planner.hint()
      #expect(planner.next(now: now) == (failure < 2000 ? .read(rows: 200) : .lead(seconds: RelayPlanner.term)))
    }
    #expect(pauses.allSatisfy { $0 > .zero })
    #expect(pauses[5] > pauses[0] * 8, "longer and longer")
  }

  @Test("a new leader fences earlier ones before it reads")
  func aNewLeaderShutsEarlierOnesOutBeforeItReads() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(2))
    #expect(planner.next(now: at(2)) == .fence(until: at(4000)))
    planner.fenced()
    #expect(planner.next(now: at(10)) == .read(rows: 200))
    planner.led(true, sentAt: at(2000), now: at(2002))
    #expect(planner.next(now: at(2002)) == .read(rows: 200), "once a lead")
  }

  @Test("a leader that is fenced or cannot fence leaves the lead to others")
  func aLeaderThatIsShutOutOrCannotFenceLeavesTheLeadToOthers() {
    var unable = RelayPlanner(now: at(0), seed: 1)
    unable.led(true, sentAt: at(0), now: at(2))
    unable.failed(now: at(4000))
    var refused = leader()
    refused.read(rows: 3, events: 120, of: 200, now: at(1))
    refused.failed(now: at(2), isShutOut: true)
    for var planner in [unable, refused] {
      guard case .wait(let next) = planner.next(now: at(4000)) else {
        Issue.record("it keeps the lead")
        return
      }
      #expect(next >= at(7500) && next <= at(8000), "its term is over, and the others have tried")
      #expect(planner.next(now: next) == .lead(seconds: RelayPlanner.term))
      planner.led(true, sentAt: next, now: next)
      #expect(planner.next(now: next) == .fence(until: next + RelayPlanner.usable))
    }
  }

  @Test("rounds become smaller if they do not arrive in time")
  func roundsThatDoNotArriveInTimeGetSmaller() {
    var planner = leader()
    planner.read(rows: 200, events: 8000, of: 200, now: at(1))
    for rows in [100, 50] {
      planner.failed(now: at(1))
      #expect(planner.next(now: at(1000)) == .read(rows: rows))
      planner.read(rows: rows, events: rows * 40, of: rows, now: at(1000))
    }
    for rows in [100, 200, 200] {
      planner.published()
      #expect(planner.next(now: at(1000)) == .read(rows: rows))
      planner.read(rows: rows, events: rows * 40, of: rows, now: at(1000))
    }
  }

  @Test("a row that does not arrive in time is read in parts, down to single events")
  func rowsThatDoNotArriveInTimeAreCut() {
    var planner = leader()
    var sizes: [Int] = []
    for _ in 0..<20 {
      planner.read(rows: 1, events: 2000, of: 1, now: at(1))
      sizes.append(planner.bytes)
      planner.failed(now: at(1))
    }
    #expect(sizes[..<3] == [3 << 20, 3 << 19, 3 << 18] && sizes.last! < 1000)
    for _ in 0..<20 { planner.published() }
    #expect(planner.bytes == RelayPlanner.mostBytes)
  }

  @Test("rounds are limited by their number of events")
  func roundsAreBoundedByEvents() {
    var planner = leader()
    planner.read(rows: 10, events: 10_000, of: 10, now: at(1))
    planner.published()
    #expect(planner.next(now: at(1)) == .read(rows: 8))
    for _ in 0..<60 {
      planner.read(rows: 4, events: 4, of: 4, now: at(1))
      planner.published()
    }
    #expect(planner.next(now: at(1)) == .read(rows: 200), "small rows are taken by the hundred")
  }

  // MARK: Draining

  @Test("a draining leader continues until its events are published")
  func aLeaderGoesOnUntilItsEventsArePublished() {
    var planner = leader()
    planner.read(rows: 1, events: 1, of: 200, now: at(1))
    planner.drain(until: at(20_000), now: at(1))
    #expect(planner.next(now: at(1)) == publish(readingAhead: nil), "the round that it has read")
    planner.published()
    #expect(planner.next(now: at(2)) == .look)
    planner.looked(5...9)
    #expect(planner.next(now: at(2)) == .read(rows: 200))
    planner.read(rows: 4, events: 4, of: 200, now: at(2))
    planner.published()
    #expect(planner.next(now: at(7)) == .look)
    planner.looked(9...12)
    #expect(planner.next(now: at(7)) == .read(rows: 200), "row 9 still waits")
    planner.read(rows: 1, events: 1, of: 200, now: at(7))
    planner.published()
    #expect(planner.next(now: at(12)) == .look)
    planner.looked(10...900)
    #expect(planner.next(now: at(12)) == .end, "a worker does not wait for the events of others")
  }

  @Test("a drain with an empty outbox ends at once")
  func nobodyStaysForAnEmptyOutbox() {
    for planner in [leader(), RelayPlanner(now: at(0), seed: 1)] {
      var planner = planner
      planner.drain(until: at(20_000), now: at(1))
      #expect(planner.next(now: at(1)) == .look)
      planner.looked(nil)
      #expect(planner.next(now: at(2)) == .end)
    }
  }

  @Test("a draining follower waits until its events are published, or publishes them itself")
  func aFollowerStaysUntilAnotherHasPublishedOrItMayItself() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(false, sentAt: at(0), now: at(0))
    planner.drain(until: at(20_000), now: at(1))
    #expect(planner.next(now: at(1)) == .look)
    planner.looked(5...9)
    #expect(planner.next(now: at(2)) == .lead(seconds: RelayPlanner.term))
    planner.led(false, sentAt: at(2), now: at(3))
    #expect(planner.next(now: at(3)) == .look)
    planner.looked(7...12)
    guard case .wait(let next) = planner.next(now: at(3)) else {
      Issue.record("the lead is asked for without pause")
      return
    }
    #expect(next <= at(203))
    #expect(planner.next(now: next) == .lead(seconds: RelayPlanner.term))
    planner.led(true, sentAt: next, now: next)
    planner.fenced()
    #expect(planner.next(now: next) == .read(rows: 200))
  }

  @Test("the relay of a drain ends in time")
  func aDrainEndsInTime() {
    var planner = leader()
    planner.read(rows: 1, events: 1, of: 200, now: at(1))
    planner.drain(until: at(100), now: at(1))
    #expect(planner.next(now: at(1)) == publish(readingAhead: nil, until: at(100)))
    planner.published()
    planner.looked(5...9)
    for _ in 0..<10 { planner.failed(now: at(90)) }
    #expect(planner.next(now: at(90)) == .wait(until: at(100)))
    #expect(planner.next(now: at(100)) == .end)
  }
}
