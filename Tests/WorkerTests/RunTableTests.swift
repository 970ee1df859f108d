import TaskCore
import TaskStore
import Testing
import TransferEngine

@testable import WorkerCore

@Suite struct RunTableTests {
  private let first = WorkerID(rawValue: 1)
  private let second = WorkerID(rawValue: 2)
  private let gone = TaskFailure(code: .storageVolumeGone, message: "gone", class: .wait)

  /// Two runs at once. A run may make no progress for 600 s, and may take 60 s to stop.
  private var table = RunTable(concurrency: 2, watchdog: Watchdog())

  private func claim(_ number: UInt64, storage: String = "default", epoch: Int = 1) -> Claim {
    let spec = TaskSpec(
      id: UniqueID(high: 0, low: number), kind: .download, source: "http://127.0.0.1/a.mp4",
      destination: "storage://\(storage)/a.mp4")
    return Claim(spec: spec, epoch: epoch, attempt: 1, checkpoint: nil)
  }

  private mutating func begin(_ claim: Claim, under worker: WorkerID? = nil) -> RunTable.ID {
    table.begin(
      claim, under: worker ?? first, meter: ProgressMeter(bytesDone: 0, bytesTotal: nil, now: at(0)))
  }

  private func id(_ number: UInt64) -> UniqueID { UniqueID(high: 0, low: number) }

  // MARK: Running

  @Test("an empty table is idle and has every slot free")
  func empty() {
    #expect(table.free == 2)
    #expect(table.running == 0)
    #expect(table.isIdle)
    #expect(!table.hasDetached)
    #expect(!table.isRunning(id(1)))
  }

  @Test("a run holds a slot until its handler returns")
  mutating func holdsSlot() {
    let run = begin(claim(1))
    #expect(table[run]?.phase == .running)
    #expect(table.stopReason(of: run) == nil)
    #expect(table.isRunning(id(1)))
    #expect((table.free, table.running, table.isIdle) == (1, 1, false))
    table.returned(run)
    #expect(table[run] == nil)
    #expect((table.free, table.running, table.isIdle) == (2, 0, true))
  }

  @Test("more runs than slots leave no slot free, and the number never becomes negative")
  mutating func overfull() {
    for number in 1...3 { _ = begin(claim(UInt64(number))) }
    #expect(table.free == 0)
    #expect(table.running == 3)
  }

  // MARK: Hosts

  @Test("runs that stand in line for long limit their host, and those without need are handed back, the last first")
  mutating func lines() {
    table = RunTable(concurrency: 64, watchdog: Watchdog())
    let runs = (1...8).map { begin(claim($0)) }
    func look(_ table: inout RunTable, _ inLine: Set<Int>, at seconds: Int) -> [String: HostLimit] {
      for (number, run) in runs.enumerated() {
        table.observe(
          run, bytesDone: 0, bytesTotal: nil, pulses: 0, at: place(inLine.contains(number)), now: at(seconds * 1000))
      }
      return table.hostLimits(of: first, now: at(seconds * 1000))
    }
    #expect(look(&table, [3, 4, 5, 6, 7], at: 10) == [:], "a line that moves is none")
    #expect(look(&table, [4, 5, 6, 7], at: 14) == [:])
    #expect(look(&table, [4, 5, 6, 7], at: 15) == ["127.0.0.1": HostLimit(6)])
    #expect(look(&table, [4, 5, 6, 7], at: 15) == ["127.0.0.1": HostLimit(6)])
    #expect(table.relieve(["b.example"], now: at(15_000)) == [])
    #expect(table.relieve(["127.0.0.1"], now: at(15_000)) == [.stop(runs[7], .crowded), .stop(runs[6], .crowded)])
    #expect(table.relieve(["127.0.0.1"], now: at(16_000)) == [])
    for run in runs[6...] { table.returned(run) }
    #expect(look(&table, [5], at: 40) == ["127.0.0.1": HostLimit(7)], "the host serves one more")
    #expect(look(&table, [], at: 50) == ["127.0.0.1": HostLimit(8)])
    #expect(look(&table, [], at: 69) == ["127.0.0.1": HostLimit(8)])
    #expect(look(&table, [], at: 70) == [:], "nobody has stood in line for 30 s")
  }

  @Test("copies between two servers limit neither, whichever they stand in line for, and are not handed back")
  mutating func copiesBetweenServers() {
    table = RunTable(concurrency: 64, watchdog: Watchdog())
    let runs = (1...8).map { number in
      var claim = claim(UInt64(number))
      guard number > 1 else { return begin(claim) }
      (claim.spec.kind, claim.spec.destination) = (.copy, "https://slow.example/a.mp4")
      return begin(claim)
    }
    for seconds in [0, 5, 10] {
      for (number, run) in runs.enumerated() {
        table.observe(
          run, bytesDone: 0, bytesTotal: nil, pulses: 0,
          at: number == 0 ? place(false) : place(number > 2, at: "slow.example:443"), now: at(seconds * 1000))
      }
      #expect(table.hostLimits(of: first, now: at(seconds * 1000)) == [:])
    }
    #expect(table.relieve(["127.0.0.1"], now: at(15_000)) == [])
  }

  @Test("runs that stand in line for one server do not limit those of another with the same name")
  mutating func mirrors() {
    table = RunTable(concurrency: 64, watchdog: Watchdog())
    let runs = (1...4).map { begin(claim($0)) }
    func look(_ table: inout RunTable, fast: Set<Int>, inLine: Set<Int>, at seconds: Int) -> [String: HostLimit] {
      for (number, run) in runs.enumerated() {
        let port = fast.contains(number) ? 81 : 80
        table.observe(
          run, bytesDone: 0, bytesTotal: nil, pulses: 0,
          at: place(inLine.contains(number), at: "127.0.0.1:\(port)"), now: at(seconds * 1000))
      }
      return table.hostLimits(of: first, now: at(seconds * 1000))
    }
    #expect(look(&table, fast: [0], inLine: [2, 3], at: 0) == [:])
    #expect(
      look(&table, fast: [0], inLine: [2, 3], at: 5) == ["127.0.0.1": HostLimit(4)], "a redirect may be on its way")
    #expect(look(&table, fast: [1], inLine: [2, 3], at: 10) == [:])
    #expect(look(&table, fast: [0, 1], inLine: [1, 2, 3], at: 15) == [:], "a line that moves is none")
    #expect(look(&table, fast: [0, 1], inLine: [1, 2], at: 20) == ["127.0.0.1": HostLimit(4)], "each has a line")
    #expect(look(&table, fast: [], inLine: [2, 3], at: 25) == ["127.0.0.1": HostLimit(4)])
  }

  @Test("runs that only this worker can take are not handed back all the time")
  func nobodyElse() {
    var table = RunTable(concurrency: 64, watchdog: Watchdog())
    func crowd(_ numbers: ClosedRange<UInt64>, at seconds: Int) -> Int {
      let runs = numbers.map {
        table.begin(claim($0), under: first, meter: ProgressMeter(bytesDone: 0, bytesTotal: nil, now: at(0)))
      }
      for second in [seconds, seconds + 5] {
        for run in runs {
          table.observe(run, bytesDone: 0, bytesTotal: nil, pulses: 0, at: place(true), now: at(second * 1000))
        }
        _ = table.hostLimits(of: first, now: at(second * 1000))
      }
      return table.relieve(["127.0.0.1"], now: at(seconds * 1000 + 5000)).count
    }
    #expect(crowd(1...4, at: 0) == 2)
    #expect(crowd(5...6, at: 10) == 0)
    #expect(crowd(7...8, at: 30) == 4)
  }

  @Test(
    "a host that refuses runs while it serves those of other workers lets them wait without an attempt",
    arguments: [TaskFailure.Code.http(503), TaskFailure.Code(rawValue: "s3_slow_down")])
  mutating func refused(_ code: TaskFailure.Code) {
    let failure = TaskFailure(code: code, message: "busy", class: .retry)
    let run = begin(claim(1))
    #expect(table.judge(failure, of: run, now: at(0)).class == .retry)
    #expect(table.hostLimits(of: first, now: at(0)) == ["127.0.0.1": HostLimit(1, isRefusing: true)])
    #expect(table.relieve(["127.0.0.1"], now: at(0)) == [])
    #expect(table.judge(failure, of: run, now: at(1000)).class == .wait)
    #expect(
      table.judge(TaskFailure(code: .http(404), message: "404", class: .retry), of: run, now: at(0)).class == .retry)
    #expect(table.relieve([], now: at(1000)) == [])
    #expect(table.judge(failure, of: run, now: at(1000)).class == .retry, "no other worker is served")
    #expect(table.hostLimits(of: first, now: at(31_000)) == [:])
    // Some of its own stand in line, and none is served.
    table.observe(
      run, bytesDone: 0, bytesTotal: nil, pulses: 0, at: place(true), now: at(40_000))
    #expect(table.hostLimits(of: first, now: at(45_000)) == ["127.0.0.1": HostLimit(1)])
    _ = table.relieve(["127.0.0.1"], now: at(45_000))
    #expect(table.judge(failure, of: run, now: at(45_000)).class == .wait)
    #expect(table.hostLimits(of: first, now: at(45_000)) == ["127.0.0.1": HostLimit(0, isRefusing: true)])
    // What is refused beside a run that is served is not one too many.
    let served = begin(claim(2))
    table.observe(served, bytesDone: 1000, bytesTotal: nil, pulses: 0, at: place(false), now: at(46_000))
    #expect(table.hostLimits(of: first, now: at(46_000)) == ["127.0.0.1": HostLimit(1)])
    #expect(table.judge(failure, of: run, now: at(46_000)).class == .retry)
    // Nor where none stands in line.
    table.observe(run, bytesDone: 0, bytesTotal: nil, pulses: 0, at: place(false), now: at(47_000))
    #expect(table.hostLimits(of: first, now: at(77_000)) == [:])
    #expect(table.judge(failure, of: run, now: at(77_000)).class == .retry)
    #expect(table.judge(failure, of: served, now: at(77_000)).class == .wait, "it is the only one")
  }

  // MARK: Stopping

  @Test("a run is stopped once, and keeps the first reason")
  mutating func stopsOnce() {
    let run = begin(claim(1))
    #expect(table.stop(id(1), .intent(.pause), now: at(10)) == [.stop(run, .intent(.pause))])
    #expect(table[run]?.phase == .stopping(.intent(.pause), since: at(10)))
    #expect(table.stop(id(1), .intent(.cancel), now: at(20)) == [])
    #expect(table.stopAll(.drain, now: at(30)) == [])
    #expect(table.stopReason(of: run) == .intent(.pause))
    #expect((table.free, table.running, table.isIdle) == (1, 1, false))
    table.returned(run)
    #expect(table.isIdle)
  }

  @Test("an intent for a task that does not run here changes nothing")
  mutating func unknownTask() {
    #expect(table.stop(id(1), .intent(.pause), now: at(0)) == [])
  }

  @Test("a drain stops every run")
  mutating func drains() {
    let runs = [begin(claim(1)), begin(claim(2))]
    #expect(table.stopAll(.drain, now: at(0)) == runs.map { .stop($0, .drain) })
    table.returned(runs[0])
    #expect(!table.isIdle)
    table.returned(runs[1])
    #expect(table.isIdle)
  }

  // MARK: Losing the task

  @Test("a lost lease detaches only its own runs, and hands nothing back")
  mutating func lostLease() {
    let lost = begin(claim(1), under: first)
    let kept = begin(claim(2), under: second)
    #expect(table.leaseLost(first) == [.detach(lost)])
    #expect(table.stopReason(of: lost) == .abandoned)
    #expect(table.stopReason(of: kept) == nil)
    #expect(!table.isRunning(id(1)))
    #expect((table.free, table.running, table.hasDetached) == (0, 1, true))
    table.returned(lost)
    #expect((table.free, table.running, table.hasDetached) == (1, 1, false))
  }

  @Test("a drain does not wait for the handlers of a lost lease")
  mutating func lostLeaseIsIdle() {
    _ = begin(claim(1))
    _ = table.leaseLost(first)
    #expect(table.isIdle)
    #expect(table.hasDetached)
  }

  @Test("a task that is claimed again replaces its former run, which may write nothing more")
  mutating func claimedAgain() {
    let former = begin(claim(1, epoch: 1))
    let later = begin(claim(1, epoch: 2))
    #expect(table.stopReason(of: former) == .abandoned)
    #expect(table.stopReason(of: later) == nil)
    #expect((table.free, table.running, table.hasDetached) == (0, 1, true))
    table.returned(former)
    #expect(table.isRunning(id(1)), "the end of the former run is not the end of the later one")
    #expect((table.free, table.running, table.hasDetached) == (1, 1, false))
    #expect(table.stop(id(1), .drain, now: at(0)) == [.stop(later, .drain)])
  }

  @Test("a run that has ended may write nothing more")
  mutating func ended() {
    let run = begin(claim(1))
    table.returned(run)
    #expect(table.stopReason(of: run) == .abandoned)
    table.returned(run)
    table.handedBack(run)
    #expect((table.free, table.isIdle) == (2, true))
  }

  // MARK: Watching

  @Test("a run that stands still is stopped, and handed back when it does not stop in time")
  mutating func standsStill() {
    let run = begin(claim(1))
    #expect(table.look(now: at(599_999)) == [])
    #expect(table.look(now: at(600_000)) == [.stop(run, .stalled)])
    #expect(table.look(now: at(659_999)) == [])
    #expect(table.look(now: at(660_000)) == [.detach(run), .handBack(run, .stopped, .stalled)])
    #expect(table.look(now: at(2_000_000)) == [])
    #expect(!table.isRunning(id(1)))
    #expect((table.free, table.running) == (1, 0), "its handler still holds its slot")
  }

  @Test("a run that takes longer than its kind allows is stopped once, whatever it does")
  mutating func takesTooLong() {
    let run = table.begin(
      claim(1), under: first, meter: ProgressMeter(bytesDone: 0, bytesTotal: nil, now: at(0)), deadline: at(5000))
    table.observe(run, bytesDone: 1, bytesTotal: nil, pulses: 1, now: at(4999))
    #expect(table.look(now: at(4999)) == [])
    #expect(table.look(now: at(5000)) == [.stop(run, .timedOut)])
    #expect(table.look(now: at(6000)) == [])
    #expect(table.stopReason(of: run) == .timedOut)
  }

  @Test("the task of a run that does not stop for a pause is handed back for the pause")
  mutating func doesNotPause() {
    let run = begin(claim(1))
    _ = table.stop(id(1), .intent(.pause), now: at(1000))
    #expect(table.look(now: at(60_999)) == [])
    #expect(table.look(now: at(61_000)) == [.detach(run), .handBack(run, .stopped, .intent(.pause))])
  }

  @Test("bytes and pulses keep a run from being stopped")
  mutating func signsOfLife() {
    let run = begin(claim(1))
    table.observe(run, bytesDone: 1, bytesTotal: nil, pulses: 0, now: at(500_000))
    #expect(table.look(now: at(1_099_999)) == [])
    table.observe(run, bytesDone: 1, bytesTotal: nil, pulses: 1, now: at(1_099_999))
    #expect(table.look(now: at(1_699_998)) == [])
    #expect(table.look(now: at(1_699_999)) == [.stop(run, .stalled)])
  }

  @Test("a drain waits for a task that is being handed back, not for its handler")
  mutating func handedBackFirst() {
    let run = begin(claim(1))
    _ = table.stopAll(.drain, now: at(0))
    _ = table.look(now: at(60_000))
    #expect(!table.isIdle)
    table.handedBack(run)
    #expect((table.isIdle, table.hasDetached, table.free) == (true, true, 1))
    table.returned(run)
    #expect((table.isIdle, table.hasDetached, table.free) == (true, false, 2))
    #expect(table[run] == nil)
  }

  @Test("a drain waits for a task that is being handed back even when its handler has returned")
  mutating func returnedFirst() {
    let run = begin(claim(1))
    _ = table.stopAll(.drain, now: at(0))
    _ = table.look(now: at(60_000))
    table.returned(run)
    #expect(table[run]?.phase == .handingBack)
    #expect(table.stopReason(of: run) == .abandoned)
    #expect((table.isIdle, table.hasDetached, table.free) == (false, false, 2))
    table.handedBack(run)
    #expect((table.isIdle, table[run] == nil) == (true, true))
  }

  @Test("a lost lease does not take up a task that is being handed back")
  mutating func lostWhileHandingBack() {
    let run = begin(claim(1))
    _ = table.rootHangs("default", gone)
    #expect(table.leaseLost(first) == [])
    #expect(!table.isIdle)
    table.handedBack(run)
    #expect(table.isIdle)
  }

  // MARK: Roots that do not answer

  @Test("a root that does not answer gives its tasks back and holds no slot")
  mutating func hangingRoot() {
    let run = begin(claim(1))
    let other = begin(claim(2, storage: "other"))
    #expect(table.rootHangs("default", gone) == [.detach(run), .handBack(run, .failed(gone), nil)])
    #expect(table[run]?.phase == .detached(holdsSlot: false, isHandingBack: true))
    #expect(table[other]?.phase == .running)
    #expect((table.free, table.running, table.hasDetached, table.isIdle) == (1, 1, true, false))
    #expect(table.rootHangs("default", gone) == [], "a task is handed back once")
    table.handedBack(run)
    table.returned(run)
    #expect((table.free, table.hasDetached) == (1, false))
  }

  @Test("a run on a root that does not answer keeps its reason to stop")
  mutating func hangingWhileStopping() {
    let run = begin(claim(1))
    _ = table.stop(id(1), .intent(.cancel), now: at(0))
    #expect(
      table.rootHangs("default", gone) == [.detach(run), .handBack(run, .failed(gone), .intent(.cancel))])
  }

  @Test("no more runs than slots hang without a slot; the next ones keep theirs")
  mutating func manyHang() {
    var hanging: [RunTable.ID] = []
    for number in 1...3 {
      hanging.append(begin(claim(UInt64(number))))
      _ = table.rootHangs("default", gone)
    }
    #expect(
      hanging.map { table[$0]?.phase } == [false, false, true].map { .detached(holdsSlot: $0, isHandingBack: true) })
    #expect(table.free == 1)
    // Once a handler has returned, another run may hang without a slot instead.
    table.returned(hanging[0])
    let next = begin(claim(4))
    _ = table.rootHangs("default", gone)
    #expect(table[next]?.phase == .detached(holdsSlot: false, isHandingBack: true))
    #expect(table.free == 1)
  }

  // MARK: Progress

  @Test("progress is published when it changes, and recorded only for the runs of the lease")
  mutating func progress() {
    let runs = [begin(claim(1), under: first), begin(claim(2), under: second)]
    #expect(table.takePublished() == [])
    for run in runs { table.observe(run, bytesDone: 500, bytesTotal: 1000, pulses: 0, now: at(1000)) }
    #expect(Set(table.takePublished().map(\.taskID)) == [id(1), id(2)])
    #expect(table.takePublished() == [])
    let renewed = table.takeRenewed(of: first, atOnce: 48, now: at(1000))
    #expect(renewed == [ProgressSample(taskID: id(1), epoch: 1, bytesDone: 500, bytesTotal: 1000, rate: 500)])
    #expect(table.takeRenewed(of: first, atOnce: 48, now: at(1001)) == [])
  }

  @Test("of very many runs each call takes a part, and all have their turn")
  mutating func parts() {
    table = RunTable(concurrency: 2000, watchdog: Watchdog())
    let runs = (1...1000).map { begin(claim($0)) }
    for run in runs { table.observe(run, bytesDone: 500, bytesTotal: 1000, pulses: 0, now: at(1000)) }
    var (published, recorded): ([UniqueID], [UniqueID]) = ([], [])
    for _ in 0..<4 {
      let samples = table.takePublished()
      #expect(samples.count <= 256)
      published += samples.map(\.taskID)
    }
    for _ in 0..<21 {
      let samples = table.takeRenewed(of: first, atOnce: 48, now: at(1000))
      #expect(samples.count <= 48)
      recorded += samples.map(\.taskID)
    }
    #expect(published.count == 1000 && Set(published).count == 1000)
    #expect(recorded.count == 1000 && Set(recorded).count == 1000)
  }

  @Test("in a large fleet each records the progress of fewer tasks at once")
  mutating func largeFleets() {
    let fleet = FleetSize()
    #expect(fleet.share(48, of: 5) == 48)
    fleet.found(5)
    #expect(fleet.share(48, of: 5) == 48)
    fleet.found(10)
    #expect(fleet.share(48, of: 5) == 24)
    fleet.found(1000)
    #expect(fleet.share(48, of: 5) == 1, "so that all have their turn")
    table = RunTable(concurrency: 100, watchdog: Watchdog())
    let runs = (1...100).map { begin(claim($0)) }
    for run in runs { table.observe(run, bytesDone: 500, bytesTotal: 1000, pulses: 0, now: at(1000)) }
    let rounds = (0..<102).map { _ in table.takeRenewed(of: first, atOnce: 1, now: at(1000)).map(\.taskID) }
    #expect(rounds.allSatisfy { $0.count <= 1 } && Set(rounds.joined()).count == 100)
  }

  @Test("the progress of a detached run is not published")
  mutating func detachedProgress() {
    let run = begin(claim(1))
    table.observe(run, bytesDone: 500, bytesTotal: 1000, pulses: 0, now: at(1000))
    _ = table.leaseLost(first)
    #expect(table.takePublished() == [])
    #expect(table.takeRenewed(of: first, atOnce: 48, now: at(2000)) == [])
  }
}

private func place(_ isInLine: Bool, at server: String = "127.0.0.1:80") -> HostLine.Place {
  HostLine.Place(server: server, isInLine: isInLine)
}
