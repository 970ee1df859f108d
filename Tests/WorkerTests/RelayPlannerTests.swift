import Testing
import Worker

@Suite struct RelayPlannerTests {
  @Test func aFollowerTriesAboutOnceASecond() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    #expect(planner.next(now: at(0)) == .lead(seconds: RelayPlanner.term))
    planner.led(false, sentAt: at(0), now: at(2))
    guard case .wait(let until) = planner.next(now: at(2)) else {
      Issue.record("the lead is asked for without pause")
      return
    }
    #expect(until >= at(502) && until <= at(1002))
    #expect(planner.next(now: until) == .lead(seconds: RelayPlanner.term))
    #expect(!planner.mayPublish(now: until))
  }

  @Test func aLeaderRelaysAndRenewsItsTerm() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(2))
    guard case .relay(let rows) = planner.next(now: at(2)) else {
      Issue.record("a leader relays")
      return
    }
    planner.relayed(rows: rows, events: rows, of: rows, now: at(5))
    guard case .relay = planner.next(now: at(5)) else {
      Issue.record("a full round is followed by the next")
      return
    }
    #expect(planner.next(now: at(2000)) == .lead(seconds: RelayPlanner.term))
    #expect(planner.mayPublish(now: at(3999)))
    #expect(!planner.mayPublish(now: at(4000)), "two thirds of the term")
  }

  @Test func anAnswerAfterTheTermIsNoLead() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(4000))
    #expect(!planner.mayPublish(now: at(4000)))
  }

  @Test func backsOffWhenEmptyUntilHinted() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(0))
    for _ in 0..<10 { planner.relayed(rows: 0, events: 0, of: 100, now: at(100)) }
    guard case .wait(let until) = planner.next(now: at(100)) else {
      Issue.record("an empty outbox is not read without pause")
      return
    }
    #expect(until >= at(200) && until <= at(300))
    planner.hint()
    guard case .relay = planner.next(now: at(100)) else {
      Issue.record("hinted")
      return
    }
  }

  @Test func roundsAreBoundedByEvents() {
    var planner = RelayPlanner(now: at(0), seed: 1)
    planner.led(true, sentAt: at(0), now: at(0))
    planner.relayed(rows: 10, events: 10_000, of: 10, now: at(1))
    #expect(planner.next(now: at(1)) == .relay(rows: 4))
    for _ in 0..<60 { planner.relayed(rows: 4, events: 4, of: 4, now: at(1)) }
    #expect(planner.next(now: at(1)) == .relay(rows: 200), "small rows are taken by the hundred")
  }
}
