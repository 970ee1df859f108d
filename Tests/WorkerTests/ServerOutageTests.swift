import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

@testable import WorkerCore

@Suite struct ServerOutageTests {
  private let away = TaskFailure(code: .connectFailed, message: "refused", class: .retry)
  private let busy = TaskFailure(code: .http(503), message: "busy", class: .retry)

  private var table = RunTable(concurrency: 64, watchdog: Watchdog())

  private mutating func begin(
    _ number: UInt64, _ source: String = "https://a.example/x", bytesDone: Int64 = 0, kind: TaskKind = .download,
    to destination: String = "storage://default/x", at time: Int = 0
  ) -> RunTable.ID {
    let spec = TaskSpec(id: UniqueID(high: 0, low: number), kind: kind, source: source, destination: destination)
    let checkpoint = bytesDone == 0 ? nil : Checkpoint(version: 1, bytesDone: bytesDone, payload: [])
    return table.begin(
      Claim(spec: spec, epoch: 1, attempt: 1, checkpoint: checkpoint), under: WorkerID(rawValue: 1),
      meter: ProgressMeter(bytesDone: bytesDone, bytesTotal: nil, now: at(time)))
  }

  private mutating func serve(_ source: String = "https://a.example/x", at time: Int) {
    let run = begin(1000, source, at: time)
    table.succeeded(run, at: "a.example:443", now: at(time))
    table.returned(run)
  }

  /// Whether the failure of a new run at that second is the server's, as this worker knows; nil if it tells nothing of it.
  private mutating func fail(
    _ number: UInt64, _ failure: TaskFailure? = nil, from source: String = "https://a.example/x", bytesDone: Int64 = 0,
    newBytes: Int64 = 0, server: String? = nil, at second: Int
  ) -> Bool? {
    let run = begin(number, source, bytesDone: bytesDone)
    defer { table.returned(run) }
    return table.suspect(failure ?? away, of: run, at: server, newBytes: newBytes, now: at(second * 1000))?.isOutForLong
  }

  @Test("a server that has served and cannot be reached for five seconds is out, until it serves again")
  mutating func unreachable() {
    serve(at: 0)
    #expect(fail(1, at: 10) == false)
    #expect(fail(1, at: 14) == false)
    #expect(fail(1, at: 15) == true)
    #expect(fail(2, at: 16) == true)
    serve(at: 17_000)
    #expect(fail(1, at: 18) == false)
    let told = table.served(now: at(18_000))
    #expect(told == [TaskServer(host: "a.example", name: "a.example:443"): at(17_000)])
    table.told(told)
    #expect(table.served(now: at(18_000)) == [:])
  }

  @Test("a server that has never served is not out, however long it fails")
  mutating func neverServed() {
    for second in 0..<60 { #expect(fail(1, at: second * 10) == false) }
    serve("https://a.example:8443/x", at: 601_000)
    #expect(fail(1, at: 602) == false, "another server of the host")
    #expect(fail(2, bytesDone: 1, at: 603) == true, "it has served this task before")
  }

  @Test("what was served more than an hour before is forgotten")
  mutating func forgets() {
    serve(at: 0)
    #expect(fail(1, at: 3700) == false)
    #expect(fail(1, at: 3710) == false)
  }

  @Test("failures that are far apart are not of one outage")
  mutating func gaps() {
    serve(at: 0)
    #expect(fail(1, at: 10) == false)
    #expect(fail(1, at: 100) == false)
    #expect(fail(1, at: 189) == true)
  }

  @Test("a server that can be reached is out if many tasks fail, and not if a few files do")
  mutating func unanswered() {
    serve(at: 0)
    for second in 0..<60 { #expect(fail(UInt64(second % 7), busy, at: 10 + second) == false) }
    #expect(fail(7, busy, at: 70) == true)
  }

  @Test("a server that serves others is not out")
  mutating func servesOthers() {
    serve(at: 0)
    let other = begin(50)
    _ = fail(1, at: 10)
    let place = HostLine.Place(server: "a.example:443")
    table.observe(other, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(16_000))
    #expect(fail(1, at: 17) == nil)
    #expect(table.served(now: at(17_000)).map(\.key.name) == ["a.example:443"])
    #expect(fail(2, at: 18) == false, "it has stood still for two seconds")
  }

  @Test(
    "what others were served before a run began does not show that its server serves, but how long it has served none")
  mutating func servedBefore() {
    serve(at: 0)
    let other = begin(50)
    let place = HostLine.Place(server: "a.example:443")
    func failing(_ table: inout RunTable, _ run: RunTable.ID, at time: Int) -> Duration? {
      table.suspect(away, of: run, at: nil, newBytes: 0, now: at(time))?.failing
    }
    table.observe(other, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(16_000))
    #expect(failing(&table, begin(1, at: 16_500), at: 17_000) == .zero)
    #expect(failing(&table, begin(1, at: 17_500), at: 17_900) == .milliseconds(900))
    table.observe(other, bytesDone: 2 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(18_000))
    #expect(failing(&table, begin(1, at: 18_500), at: 19_000) == .zero)
    #expect(failing(&table, begin(1, at: 23_500), at: 24_000) == .seconds(5))
    let last = begin(2, at: 23_000)
    table.observe(other, bytesDone: 3 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(25_000))
    #expect(failing(&table, last, at: 25_100) == nil)
    table.observe(
      last, bytesDone: 0, bytesTotal: nil, pulses: 0, at: .init(server: place.server, isInLine: true), now: at(25_500))
    #expect(failing(&table, last, at: 26_000) == .zero, "it has stood in line since")
  }

  @Test(
    "bytes that a run got before it failed are from before the outage, unless they are newer than its first failure")
  mutating func newBytes() {
    let run = begin(1)
    let place = HostLine.Place(server: "a.example:443")
    table.observe(run, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(2000))
    #expect(table.suspect(away, of: run, at: nil, newBytes: 1 << 20, now: at(10_000))?.isOutForLong == false)
    #expect(table.suspect(away, of: run, at: nil, newBytes: 1 << 20, now: at(15_000))?.isOutForLong == true)
    table.observe(run, bytesDone: 2 << 20, bytesTotal: nil, pulses: 0, at: place, now: at(16_000))
    #expect(table.suspect(away, of: run, at: nil, newBytes: 1 << 20, now: at(17_000))?.isOutForLong == false)
  }

  @Test("what an upload has given to a connection is not served; what the server has confirmed is")
  mutating func confirmed() {
    serve(at: 0)
    let upload = begin(50, "storage://a/x", kind: .upload, to: "https://a.example/y")
    let delete = begin(51, "https://a.example/z", kind: .delete)
    let place = HostLine.Place(server: "a.example:443")
    #expect(fail(1, at: 10) == false)
    table.observe(upload, bytesDone: 1 << 20, bytesTotal: nil, recorded: 0, pulses: 0, at: place, now: at(14_500))
    #expect(fail(1, at: 15) == true)
    #expect(table.served(now: at(15_000)).values.contains(at(14_500)) == false)
    table.observe(upload, bytesDone: 2 << 20, bytesTotal: nil, recorded: 1 << 20, pulses: 0, at: place, now: at(16_000))
    #expect(fail(1, at: 17) == nil)
    #expect(fail(1, at: 18) == false)
    #expect(fail(1, at: 23) == true)
    table.succeeded(upload, at: "a.example:443", now: at(24_000))
    #expect(fail(1, at: 25) == false, "it has confirmed all of it")
    #expect(fail(1, at: 30) == true)
    table.succeeded(delete, at: "a.example:443", now: at(31_000))
    #expect(fail(1, at: 32) == false, "it has just deleted something")
  }

  @Test("a run that another server serves, and one whose bytes came long before its end, tell nothing of now")
  mutating func vouches() {
    serve(at: 0)
    let (redirected, published) = (begin(50), begin(51))
    let (own, other) = (HostLine.Place(server: "a.example:443"), HostLine.Place(server: "cdn.example:443"))
    table.observe(published, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: own, now: at(2000))
    #expect(fail(1, at: 10) == false)
    table.observe(published, bytesDone: 0, bytesTotal: nil, pulses: 0, at: own, now: at(13_000))
    table.observe(published, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: own, now: at(14_000))
    table.observe(redirected, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, at: other, now: at(14_500))
    #expect(fail(1, at: 15) == true)
    table.succeeded(redirected, at: "cdn.example:443", now: at(16_000))
    table.succeeded(published, at: "a.example:443", now: at(16_000))
    #expect(fail(1, at: 17) == true)
    #expect(table.served(now: at(17_000)).values.allSatisfy { $0 <= at(2000) })
  }

  @Test("a host is out as a whole unless another server of it has served within the hour, and does not fail, too")
  mutating func wholes() {
    func isWhole(_ table: inout RunTable, _ run: RunTable.ID, at second: Int) -> Bool? {
      table.suspect(away, of: run, at: nil, newBytes: 0, now: at(second * 1000))?.isWholeHost
    }
    let (first, second) = (begin(1), begin(2, "http://a.example/x"))
    serve(at: 0)
    #expect(isWhole(&table, first, at: 10) == true)
    serve("http://a.example/x", at: 11_000)
    #expect(isWhole(&table, first, at: 12) == false)
    #expect(isWhole(&table, second, at: 13) == true)
    #expect(isWhole(&table, first, at: 14) == true)
    serve("http://a.example/x", at: 15_000)
    #expect(isWhole(&table, first, at: 16) == false)
    #expect(isWhole(&table, first, at: 3616) == true, "it was long ago")
  }

  @Test("other failures, other kinds, and copies between two servers tell nothing of a server")
  mutating func others() {
    serve(at: 0)
    for failure in [
      TaskFailure(code: .http(404), message: "", class: .fail),
      TaskFailure(code: .http(500), message: "", class: .retry),
      TaskFailure(code: .http(429), message: "", class: .retry),
      TaskFailure(code: .diskFull, message: "", class: .wait),
      TaskFailure(code: .connectFailed, message: "", class: .wait),
    ] {
      #expect(fail(1, failure, at: 10) == nil)
    }
    for (number, run) in [
      begin(1, kind: .noop), begin(2, kind: TaskKind(rawValue: "transcode")), begin(3, "storage://a/x", kind: .copy),
      begin(4, kind: .copy, to: "https://b.example/x"), begin(6, "s3://a/x", kind: .copy, to: "s3://b/x"),
    ].enumerated() {
      #expect(table.suspect(away, of: run, at: nil, newBytes: 0, now: at(20_000)) == nil, "\(number)")
    }
    let upload = begin(5, "storage://a/x", kind: .upload, to: "s3://Bucket/key")
    let failure = table.suspect(away, of: upload, at: nil, newBytes: 0, now: at(20_000))
    #expect(failure?.server == TaskServer(host: "bucket.s3", name: "bucket.s3"))
  }

  @Test("what a redirect led to tells nothing of the server, and neither does what asked no server")
  mutating func elsewhere() {
    serve(at: 0)
    #expect(fail(1, server: "cdn.example:443", at: 10) == nil)
    #expect(fail(1, server: "cdn.example:443", at: 20) == nil)
    #expect(fail(1, server: "A.example:443", at: 30) == false)
    let skipped = begin(2, at: 34_000)
    table.observe(skipped, bytesDone: 1 << 20, bytesTotal: nil, pulses: 0, now: at(34_000))
    #expect(fail(1, at: 35) == true)
    table.succeeded(skipped, at: nil, now: at(36_000))
    #expect(fail(1, at: 36) == true)
  }

  @Test("a server that answers is there, even if it refuses")
  mutating func answers() {
    let missing = TaskFailure(code: .http(404), message: "gone", class: .fail)
    #expect(fail(1, missing, server: "a.example:443", at: 0) == nil)
    #expect(fail(2, at: 10) == false)
    #expect(fail(2, at: 20) == true)
    #expect(fail(1, missing, server: "cdn.example:443", at: 21) == nil)
    #expect(fail(2, at: 22) == true)
    let broken = TaskFailure(code: .http(500), message: "broken", class: .retry)
    #expect(fail(1, broken, server: "a.example:443", at: 22) == nil)
    #expect(fail(2, at: 22) == true)
    #expect(fail(1, missing, server: "a.example:443", at: 23) == nil)
    #expect(fail(2, at: 24) == false)
  }

  @Test("only where a worker knows no other server of the host, the host may be limited")
  mutating func wholeHosts() {
    func whole(_ table: inout RunTable, _ run: RunTable.ID) -> Bool? {
      table.suspect(away, of: run, at: nil, newBytes: 0, now: at(10_000))?.isWholeHost
    }
    let run = begin(1)
    serve(at: 0)
    #expect(whole(&table, run) == true)
    serve("http://A.example/x", at: 0)
    #expect(whole(&table, run) == false)
  }

  @Test("only the servers that served last are remembered")
  mutating func bounded() {
    for number in 0..<20_000 { serve("https://host\(number).example/x", at: number / 10) }
    #expect(fail(1, from: "https://host19999.example/x", at: 10) == false)
    #expect(fail(1, from: "https://host19999.example/x", at: 15) == true)
    #expect(fail(1, from: "https://host0.example/x", at: 10) == false)
    #expect(fail(1, from: "https://host0.example/x", at: 15) == false)
  }

  /// Each may fail twice, and would at once, before anybody can know of the outage.
  @Test("an outage that is longer than all attempts of all tasks fails none", .timeLimit(.minutes(10)))
  func endToEnd() async throws {
    try await RealFleet.run { fleet in
      let proxy = try CuttingProxy(to: fleet.origin.port)
      defer { proxy.close() }
      func spec(_ name: String) -> TaskSpec {
        fleet.origin.serve("/\(name)", OriginFile(seed: 3, size: 100_000))
        var spec = TaskSpec(
          id: .random(), kind: .download, source: "http://127.0.0.1:\(proxy.port)/\(name)",
          destination: "storage://default/\(name)", retry: RetryPolicy(maxAttempts: 2, intervals: [0]))
        // A second connection would stay open when the first one is cut.
        spec.connections = 1
        return spec
      }
      let (before, during) = (spec("before"), (0..<4).map { spec("\($0)") })
      try await fleet.withWorker { _ in
        try await fleet.send(.submit(before))
        try await eventually("it has served") { try await fleet.store.task(before.id)?.state == .succeeded }
        proxy.cut(.before, when: "GET", thenRefuse: true)
        try await fleet.send(during[0])
        try await eventually("it is cut off") { try await fleet.store.task(during[0].id)?.error != nil }
        try await fleet.send(during[1], during[2], during[3])
        try await eventually("the host is out") { try await fleet.store.limits().contains(where: \.isOut) }
        let use = try await fleet.store.limits().first(where: \.isOut)
        #expect(use?.name == "127.0.0.1" && use?.outage?.code == .connectFailed)
        try await Task.sleep(for: .seconds(8))
        #expect(try await fleet.store.counts()[.failed] == nil)
        var waits = 0
        for spec in during where try await fleet.store.task(spec.id)?.error?.class == .wait { waits += 1 }
        #expect(waits > 0)
        let again = try CuttingProxy(to: fleet.origin.port, on: proxy.port)
        defer { again.close() }
        try await eventually("all arrive") {
          for spec in during where try await fleet.store.task(spec.id)?.state != .succeeded { return false }
          return true
        }
        try await eventually("nothing is limited") {
          try await fleet.store.limits().allSatisfy { $0.outage == nil && $0.limit == nil }
        }
      }
      for spec in during { #expect(try await fleet.store.task(spec.id)?.attempt ?? 9 <= 2) }
      #expect(try await fleet.store.audit() == [])
    }
  }
}

extension RealFleet {
  fileprivate func send(_ specs: TaskSpec...) async throws {
    for spec in specs { try await send(.submit(spec)) }
  }
}

extension ServerFailure {
  /// What the store takes for an outage, unless the server has had one just before.
  fileprivate var isOutForLong: Bool { isOut && failing >= .seconds(5) }
}
