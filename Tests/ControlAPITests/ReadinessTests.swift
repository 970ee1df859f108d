import ControlAPI
import HTTPServer
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// What a server says while the schema of its database is not its own.
@Suite struct ReadinessTests {
  private static let older = "delete from schema_history where number = \(Schema.version)"
  private static let newer =
    "insert into schema_history (number, name, checksum) values (\(Schema.version + 1), 'a', 0)"
  private static let need = """
    the database's schema has version \(Schema.version - 1), but this program needs version \(Schema.version): \
    'reelhaul migrate' updates it
    """

  private static func change(_ bench: APIBench, _ sql: String) async throws {
    try await bench.pool.withConnection { _ = try await $0.script(sql) }
  }

  @Test(
    "a server is not ready before its schema is there, and every 503 says which it needs", arguments: [false, true])
  func older(requiresTokens: Bool) async throws {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = requiresTokens
    try await APIBench.run(settings) { bench in
      let token = try await bench.token(.admin)
      try await Self.change(bench, "\(Self.older); alter function find_tasks rename to found_tasks")
      let probe = await bench.ask("GET", "/readyz")
      #expect(probe.status == 503 && probe.body.contains(Self.need), "\(probe)")
      let list = await bench.ask(as: token, "GET", "/v1/tasks")
      #expect(list.status == 503 && list.body.contains(Self.need), "\(list)")
      let weight = await bench.ask(as: token, "PUT", "/v1/queues/z", #"{"weight": 2}"#)
      #expect(weight.status == 503 && weight.body.contains(Self.need), "\(weight)")
      #expect(try await bench.store.limits().allSatisfy { $0.name != "z" }, "a refused change was made")
      #expect(await bench.ask("GET", "/healthz").status == 200)
    }
  }

  @Test("a newer schema is refused at first, and not by a server that has begun with its own")
  func newer() async throws {
    try await APIBench.run { bench in
      #expect(await bench.ask("GET", "/readyz").status == 200)
      try await Self.change(bench, Self.newer)
      try await Task.sleep(for: .milliseconds(1100))  // an answer holds for a second
      #expect(await bench.ask("GET", "/readyz").status == 200)
      let late = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop)
      let probe = await late.ask("GET", "/readyz")
      #expect(probe.status == 503 && probe.body.contains("upgrade the program"), "\(probe)")
    }
  }

  @Test("while PostgreSQL does not answer, probes and scrapers are answered soon, with what the process knows")
  func silent() async throws {
    try await APIBench.run { bench in
      #expect(await bench.ask("GET", "/readyz").status == 200)
      let before = await bench.ask("GET", "/metrics")
      #expect(before.status == 200 && before.body.contains("\nreelhaul_fleet_readable 1\n"), "\(before)")
      try await bench.pool.withConnection { connection in
        _ = try await connection.script("begin; lock table fleet, worker, task in access exclusive mode")
        let late = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop)
        try await Task.sleep(for: .milliseconds(1100))  // an answer holds for a second
        let start = BootInstant.now
        async let scraped = late.ask("GET", "/metrics")
        async let probe = bench.ask("GET", "/readyz")
        #expect(await probe.status == 503 && BootInstant.now - start < .seconds(20))
        let metrics = await scraped
        #expect(metrics.status == 200 && BootInstant.now - start < .seconds(20), "\(metrics)")
        #expect(metrics.body.contains("\nreelhaul_fleet_readable 0\n") && metrics.body.contains("\nprocess_open_fds "))
        #expect(metrics.body.contains("\nreelhaul_build_info{") && !metrics.body.contains("reelhaul_workers"))
        _ = try await connection.script("rollback")
      }
    }
  }

  @Test("probes are answered whatever name they call, and then without addresses") func probes() async throws {
    try await APIBench.run { bench in
      for host in ["", "10.1.2.3:8080", "other.example"] {
        for path in ["/healthz", "/readyz"] {
          let answer = await bench.ask("GET", path, "", ["Host": host])
          #expect(answer.status == 200, "\(host) \(path): \(answer)")
        }
        #expect(await bench.ask("GET", "/v1/overview", "", ["Host": host]).status == 403)
      }
      await bench.pool.close()
      let late = APIBench(store: bench.store, pool: bench.pool, loop: bench.loop)
      let (own, other) = (
        await late.ask("GET", "/readyz"), await late.ask("GET", "/readyz", "", ["Host": "other.example"])
      )
      #expect(own.status == 503 && other.status == 503)
      #expect(own.body.contains("cannot be read: ") && !other.body.contains("cannot be read: "), "\(own) \(other)")
    }
  }
}
