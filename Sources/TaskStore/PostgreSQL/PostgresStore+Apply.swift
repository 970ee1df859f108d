import ReelhaulMessages
import ReelhaulPostgres
import TaskCore

extension PostgresStore {
  package func apply(_ commands: [Command]) async throws -> [CommandOutcome] {
    guard !commands.isEmpty else { return [] }
    let (segments, duplicates) = CommandSegment.split(commands)
    // One round trip, one transaction.
    let goesAlone = segments.count > 1 || segments.contains(where: \.goesAlone)
    var queries = [StoreQueries.beginApply(.bool(goesAlone), .uuids(segments.flatMap(\.namedTasks)))]
    for segment in segments {
      if !segment.submits.isEmpty { queries.append(submit(segment.submits.map(\.spec))) }
      if !segment.controls.isEmpty { queries.append(control(segment.controls.map(\.control))) }
    }
    queries.append(StoreQueries.endApply())
    return try await call {
      var outcomes = [CommandOutcome](repeating: .applied, count: commands.count)
      for index in duplicates { outcomes[index] = .duplicate }
      var results = try await pool.pipeline(queries).dropFirst()
      for segment in segments {
        if !segment.submits.isEmpty, let rows = results.popFirst() {
          let added = Set(try rows.only.ids(rows.onlyColumn))
          for (index, spec) in segment.submits where !added.contains(spec.id) { outcomes[index] = .duplicate }
        }
        if !segment.controls.isEmpty, let rows = results.popFirst() {
          for (outcome, place) in zip(try rows.decode(outcome), segment.controls) { outcomes[place.index] = outcome }
        }
      }
      return outcomes
    }
  }

  private func submit(_ specs: [TaskSpec]) -> PostgresQuery {
    var lanes: [LaneKey] = []
    var numbers: [LaneKey: Int32] = [:]
    var laneNumbers: [Int32] = []
    laneNumbers.reserveCapacity(specs.count)
    var dependents: [UniqueID] = []
    var dependencies: [UniqueID] = []
    for spec in specs {
      let lane = LaneKey(spec)
      if let number = numbers[lane] {
        laneNumbers.append(number)
      } else {
        lanes.append(lane)
        numbers[lane] = Int32(lanes.count)
        laneNumbers.append(Int32(lanes.count))
      }
      for dependency in spec.after {
        dependents.append(spec.id)
        dependencies.append(dependency)
      }
    }
    return StoreQueries.submit(
      .int16Array(lanes.map { Int16(clamping: -$0.priority) }), .textArray(lanes.map(\.queue)),
      .textArray(lanes.map(\.kind.rawValue)), .textArray(lanes.map(\.host)), .textArray(lanes.map(\.storage)),
      .textArray(lanes.map(\.sourceStorage)), .uuids(specs.map(\.id)), .int32Array(laneNumbers),
      .int16Array(specs.map { Int16(clamping: $0.priority) }),
      .timestamptzArray(specs.map(\.notBefore?.microseconds)), .boolArray(specs.map(\.paused)),
      .jsonArray(specs.map(TaskSpecJSON.encode)), .uuids(dependents), .uuids(dependencies))
  }

  private func control(_ controls: [Command.Control]) -> PostgresQuery {
    StoreQueries.control(
      .uuids(controls.map(\.id)),
      .uuids(controls.map(\.taskID)), .textArray(controls.map(\.action.name)),
      .int16Array(
        controls.map { control -> Int16? in
          guard case .prioritize(let priority) = control.action else { return nil }
          return Int16(clamping: priority)
        }),
      .boolArray(controls.map { $0.action == .remove(files: true) }), .textArray(controls.map(\.actor)))
  }

  private func outcome(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> CommandOutcome {
    let (outcome, worker) = (try columns["outcome"], try columns["worker_boot"])
    let (code, reason) = (try columns["code"], try columns["reason"])
    return { row in
      switch try row.text(outcome) {
      case "applied": .applied
      case "duplicate": .duplicate
      case "intended": .intended(worker: try row.id(worker))
      default: .refused(code: try row.text(code), reason: try row.text(reason))
      }
    }
  }
}
