import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  private static let waiting = PostgresStatement(
    """
    select queue, kind, sum(runnable) runnable, sum(capped) capped, sum(unserved) unserved,
           (extract(epoch from now() - min(since)) * 1000000)::bigint age
      from waiting_tasks($1) group by queue, kind
    """)

  private static let delayed = PostgresStatement("select coalesce(sum(tasks), 0)::bigint tasks from delayed_tasks($1)")

  private static let events = PostgresStatement(
    "select events, (extract(epoch from now() - since) * 1000000)::bigint age from waiting_events($1)")

  package func gauges() async throws -> FleetGauges {
    let most = Int32(FleetGauges.limit)
    return try await call {
      var gauges = FleetGauges()
      let waiting = try await pool.query(Self.waiting, .int32(most))
      let (queue, kind, age) = (try waiting.columns["queue"], try waiting.columns["kind"], try waiting.columns["age"])
      let (runnable, capped) = (try waiting.columns["runnable"], try waiting.columns["capped"])
      let unserved = try waiting.columns["unserved"]
      for row in waiting {
        let key = FleetGauges.Key(queue: try row.text(queue), kind: TaskKind(rawValue: try row.text(kind)))
        let (free, full, alone) = (try row.int64(runnable), try row.int64(capped), try row.int64(unserved))
        gauges.runnable[key] = Int(free)
        gauges.held[.cap, default: 0] += Int(full)
        gauges.held[.worker, default: 0] += Int(alone)
        if let age = try row[age]?.int64() {
          gauges.oldestRunnable[key.queue] = max(
            gauges.oldestRunnable[key.queue] ?? .zero, .microseconds(max(0, age)))
        }
      }
      let delayed = Int(try await pool.query(Self.delayed, .int32(most)).value { try $0.int64() })
      if delayed > 0 { gauges.held[.schedule] = delayed }
      for count in try await taskCounts() where count.state != .succeeded {
        gauges.tasks[count.state, default: [:]][.init(queue: count.queue, kind: count.kind)] = count.tasks
        switch count.state {
        case .paused: gauges.held[.pause, default: 0] += count.tasks
        case .blocked: gauges.held[.dependency, default: 0] += count.tasks
        default: break
        }
      }
      let events = try await pool.query(Self.events, .int32(most))
      gauges.events = Int(try events.only.int64(try events.columns["events"]))
      gauges.eventAge = .microseconds(max(0, try events.only[try events.columns["age"]]?.int64() ?? 0))
      gauges.add(try await waitingHooks())
      return gauges
    }
  }
}
