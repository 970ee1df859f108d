import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TestKit
import Testing

@testable import WorkerCore

/// Whether a worker notices that its clock is wrong.
@Suite struct ClockWatchTests {
  private func report(_ watch: inout ClockWatch, ahead: Duration, after time: Duration = .zero) -> ClockWatch.Report? {
    let theirs = Timestamp(microseconds: 1_000_000_000_000)
    let own = Timestamp(microseconds: theirs.microseconds + ahead.microseconds)
    return watch.measured(own: own, theirs: theirs, after: time)
  }

  @Test("a wrong clock is told once, in both directions, and once when it is right again") func reports() {
    var watch = ClockWatch()
    #expect(report(&watch, ahead: .seconds(5)) == nil)
    #expect(report(&watch, ahead: .seconds(6)) == .wrong(.seconds(6)))
    #expect(report(&watch, ahead: .seconds(60)) == nil && watch.offset == .seconds(60))
    #expect(report(&watch, ahead: .seconds(1)) == .right)
    #expect(report(&watch, ahead: .seconds(-7)) == .wrong(.seconds(-7)))
  }

  @Test("half of the time of the answer counts, and a slow answer says nothing") func answers() {
    var watch = ClockWatch()
    #expect(report(&watch, ahead: .seconds(1), after: .seconds(2)) == nil && watch.offset == .zero)
    #expect(report(&watch, ahead: .seconds(30), after: .seconds(3)) == nil && watch.offset == .zero)
  }

  @Test("it is compared at once and then once a minute") func interval() {
    var watch = ClockWatch()
    let start = BootInstant(nanoseconds: 1_000_000_000)
    #expect(watch.isDue(at: start) && !watch.isDue(at: start + .seconds(59)))
    #expect(watch.isDue(at: start + .seconds(60)) && !watch.isDue(at: start + .seconds(61)))
  }

  @Test("a worker logs that its clock is wrong, and its metrics tell by how much") func worker() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .warning, format: .json, descriptor: file.raw)
    let store = TestStore()
    store.setBehind(by: .seconds(100))
    let bench = try WorkerBench(store: store, log: log)
    try await bench.run {
      try await eventually("it is measured") {
        let text = try await bench.loop.task { await bench.worker.metricsSnapshot() }.value
        let metrics = try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
        return abs(metrics.value("reelhaul_worker_clock_offset_seconds") - 100) < 1
      }
    }
    log.close()
    let lines = String(decoding: try file.contents(), as: UTF8.self)
    #expect(lines.split(separator: "the clock of this machine differs").count == 2, "\(lines)")
  }
}
