import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

/// docs/metrics.md is what workers and `serve` export, and what alerts may use.
@Suite struct MetricsTests {
  /// A row of the table.
  private struct Row {
    var kind: String
    /// The labels, with the values that they may have; empty for any.
    var labels: [String: Set<String>]
    var exporters: Set<String>
  }

  private static func file(_ path: String) throws -> String {
    let root = "\(#filePath)".split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    return String(decoding: try TestFleet.contents("\(root)/\(path)"), as: UTF8.self)
  }

  private static func table() throws -> [String: Row] {
    var rows: [String: Row] = [:]
    for line in try file("docs/metrics.md").split(separator: "\n") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
        $0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed().map(String.init).joined()
      }
      guard cells.count == 8, let name = cells[1].wholeMatch(of: /`([a-z_]+)`/) else { continue }
      var labels: [String: Set<String>] = [:]
      for label in cells[3].split(separator: ";") {
        let match = try #require(label.firstMatch(of: /`([a-z]+)`(?: = ([a-z0-9_, ]+))?/))
        labels[String(match.1)] = Set((match.2 ?? "").split { $0 == "," || $0 == " " }.map(String.init))
      }
      let exporters = Set(cells[5].split { $0 == "," || $0 == " " }.map(String.init))
      rows[String(name.1)] = Row(kind: cells[2], labels: labels, exporters: exporters)
    }
    return rows
  }

  /// What `exporter` says is what the table says, and all of it.
  private func compare(_ text: PrometheusText, _ exporter: String, with table: [String: Row]) {
    let expected = table.filter { $0.value.exporters.contains(exporter) }
    #expect(Set(text.families.keys) == Set(expected.keys), "\(exporter)")
    for (name, family) in text.families {
      guard let row = table[name] else { continue }
      #expect(family.kind == row.kind, "\(name)")
      for series in family.series {
        #expect(Set(series.labels.keys) == Set(row.labels.keys), "\(name)")
        for (label, value) in series.labels {
          guard let values = row.labels[label], !values.isEmpty else { continue }
          #expect(values.contains(value), "\(name): \(label)")
        }
      }
      // All values that the table tells exist, unless only what happened is told.
      guard family.kind == "counter", !family.series.isEmpty else { continue }
      for (label, values) in row.labels where !values.isEmpty {
        #expect(Set(family.series.compactMap { $0.labels[label] }) == values, "\(name): \(label)")
      }
    }
  }

  private func get(_ path: String, _ port: Int) throws -> (status: Int, body: String) {
    let client = try RawClient(port: port)
    client.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let parts = client.receive().split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
    let status = parts.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return (try #require(status), parts.count > 1 ? String(parts[1]) : "")
  }

  private func metrics(_ port: Int) throws -> PrometheusText {
    let answer = try get("/metrics", port)
    #expect(answer.status == 200, "\(answer.body)")
    return try PrometheusText(answer.body)
  }

  @Test("docs/metrics.md names exactly what a worker and serve export, and they count what happened")
  func theTableIsTheContract() async throws {
    let table = try Self.table()
    let port = try LoopbackPort.free()
    let fleet = try await TestFleet.start(workers: 1, environment: ["REELHAUL_METRICS_PORT": "\(port)"])
    let file = OriginFile(seed: 5, size: 2_000_000)
    fleet.origin.serve("/a.mp4", file)
    let done = try await fleet.download("/a.mp4")
    try await fleet.wait(for: done, .succeeded)
    let failed = try await fleet.download("/absent.mp4")
    try await fleet.wait(for: failed, .failed)
    let held = try await fleet.download("/b.mp4") { $0.paused = true }
    try await fleet.wait(for: held, .paused)

    var worker = try metrics(port)
    try await fleet.eventually("the waits are counted, and nothing runs") {
      worker = try metrics(port)
      return worker.value("reelhaul_task_wait_seconds", ["queue": "default", "kind": "download"]) >= 2
        && worker.value("reelhaul_worker_busy") == 0
        && worker.value("reelhaul_storage_free_bytes", ["storage": "default"]) > 0
        && worker.value("reelhaul_commands_total", ["command": "submit", "result": "applied"]) >= 3
    }
    compare(worker, "worker", with: table)
    func settled(_ outcome: String) -> Double {
      worker.value("reelhaul_tasks_settled_total", ["kind": "download", "outcome": outcome])
    }
    #expect(settled("succeeded") == 1 && settled("failed") == 1 && settled("lost") == 0)
    #expect(worker.value("reelhaul_task_run_seconds", ["kind": "download", "outcome": "succeeded"]) == 1)
    #expect(worker.value("reelhaul_task_failures_total", ["kind": "download", "class": "fail"]) == 1)
    #expect(
      worker.value("reelhaul_transfer_bytes_total", ["direction": "download", "scheme": "http"]) == Double(file.size))
    #expect(worker.value("reelhaul_commands_total", ["command": "submit", "result": "applied"]) == 3)
    #expect(worker.value("reelhaul_transfers_active", ["scheme": "http"]) == 0)
    #expect(worker.value("reelhaul_connections_active") == 0)
    #expect(worker.value("reelhaul_claim_seconds") >= 2 && worker.value("reelhaul_settle_seconds") >= 1)
    #expect(worker.value("reelhaul_sync_seconds") >= 1 && worker.value("reelhaul_worker_concurrency") == 64)
    #expect(try get("/healthz", port).status == 200)
    #expect(try get("/v1/tasks", port).status == 404)

    try await fleet.serving { port in
      let serve = try metrics(port)
      compare(serve, "serve", with: table)
      #expect(serve.value("reelhaul_workers") == 1)
      for state in ["paused", "failed"] {
        #expect(serve.value("reelhaul_tasks", ["state": state, "queue": "default", "kind": "download"]) == 1)
      }
      #expect(serve.value("reelhaul_tasks_held", ["reason": "pause"]) == 1)
    }
    await fleet.stop()
  }

  @Test("a worker whose port is taken does not start, and says so")
  func aTakenPortIsRefused() async throws {
    let port = try LoopbackPort.free()
    let fleet = try await TestFleet.start(workers: 1, environment: ["REELHAUL_METRICS_PORT": "\(port)"])
    try await fleet.eventually("the first serves") { try get("/healthz", port).status == 200 }
    let second = try fleet.startWorker()
    #expect(await second.wait() == .exited(2))
    #expect(fleet.logs().contains("listen on 127.0.0.1:\(port)"))
    await fleet.stop()
  }

  @Test("a worker is alive while PostgreSQL cannot be reached, and tells its metrics")
  func healthAsksNobody() async throws {
    let port = try LoopbackPort.free()
    let fleet = try await TestFleet.start(workers: 0)
    try fleet.startWorker([
      "REELHAUL_METRICS_PORT": "\(port)", "REELHAUL_POSTGRES": "postgres://nobody@127.0.0.1:9/none",
      "REELHAUL_KAFKA": "127.0.0.1:9",
    ])
    try await fleet.eventually("it answers") { try get("/healthz", port).status == 200 }
    compare(try metrics(port), "worker", with: try Self.table())
    await fleet.stop()
  }

  @Test("every metric of the alerts and of the text exists, and every alert has its sentence in docs/metrics.md")
  func alertsUseTheTable() throws {
    let table = try Self.table()
    #expect(table.count > 30)
    let (rules, text) = (try Self.file("deploy/prometheus/alerts.yml"), try Self.file("docs/metrics.md"))
    for match in (rules + text).matches(of: /\breelhaul_[a-z_]+/) {
      let name = String(match.0)
      let base = ["_sum", "_count", "_bucket"].first { name.hasSuffix($0) }.map { String(name.dropLast($0.count)) }
      #expect(table[name] != nil || base.flatMap { table[$0]?.kind } == "histogram", "\(name)")
    }
    // Labels and values in braces, too.
    for match in rules.matches(of: /(reelhaul_[a-z_]+)\{([a-z]+)=~?"([a-z_|]+)"\}/) {
      let values = table[String(match.1)]?.labels[String(match.2)]
      #expect(values?.isSuperset(of: match.3.split(separator: "|").map(String.init)) == true, "\(match.0)")
    }
    let alerts = Set(rules.matches(of: /alert: ([A-Za-z]+)/).map { String($0.1) })
    #expect(alerts.count >= 8)
    #expect(Set(text.matches(of: /\| `(Reelhaul[A-Za-z]+)` \|/).map { String($0.1) }) == alerts)
  }
}
