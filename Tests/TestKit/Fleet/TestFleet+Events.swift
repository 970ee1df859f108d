import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import Testing

extension TestFleet {
  /// Every event record of the fleet, read by an independent program after the outbox is empty.
  package func events() async throws -> [TaskEvent] {
    try await eventually("the outbox is relayed") { try await pool.query("select from outbox limit 1").isEmpty }
    return try await records(of: "events").map { try TaskEventJSON.decode($0) }
  }

  /// The sequence of the last snapshot of each task in the `tasks` topic; nil for a tombstone.
  private func snapshots() async throws -> [String: Int?] {
    var snapshots: [String: Int?] = [:]
    for record in try await records(of: "tasks", ["-f", "%k %s\n"]) {
      let parts = record.split(separator: UInt8(ascii: " "), maxSplits: 1)
      let document = parts.count < 2 ? nil : try TaskDocumentJSON.decode(Array(parts[1]))
      snapshots[String(decoding: parts[0], as: UTF8.self)] = .some(document?.sequence)
    }
    return snapshots
  }

  /// The lines that kcat prints for a topic, in the order of each partition.
  package func records(of topic: String, _ options: [String] = []) async throws -> [[UInt8]] {
    let directory = try TemporaryDirectory()
    var streams = ChildProcess.Options()
    streams.stdout = "\(directory.path)/records"
    streams.stderr = "\(directory.path)/errors"
    let kcat = try ChildProcess(
      "kcat", ["-b", bootstrap, "-t", "\(prefix)\(topic)", "-C", "-o", "beginning", "-e", "-q"] + options, streams)
    guard await kcat.wait() == .exited(0) else {
      throw TestFleetError("kcat: \(String(decoding: try Self.contents("\(directory.path)/errors"), as: UTF8.self))")
    }
    return try Self.contents("\(directory.path)/records").split(separator: UInt8(ascii: "\n")).map { Array($0) }
  }

  /// The problems of the events. Each task's events must be numbered from 1 without gaps and appear in this order;
  /// repeated events must be equal; and the last snapshot must be that of the last event.
  package func problemsOfEvents() async throws -> [String] {
    var problems = try await foundProblems()
    // A committed transaction may become readable a moment later.
    for _ in 0..<120 where !problems.isEmpty {
      try await loop.sleep(for: .milliseconds(500))
      problems = try await foundProblems()
    }
    return problems
  }

  private func foundProblems() async throws -> [String] {
    let last = try await pool.query("select id, sequence from task_document").map { row in
      let id = try row.uuid(0)
      return (UniqueID(high: id.high, low: id.low), Int(try row.int32(1)))
    }
    let events = Dictionary(grouping: try await events(), by: \.taskID)
    let snapshots = try await snapshots()
    return last.compactMap { task, last in
      guard snapshots[task.description] == last else {
        return "task \(task): its last snapshot is \(snapshots[task.description].debugDescription) of \(last)"
      }
      var seen: [TaskEvent] = []
      for event in events[task] ?? [] {
        if let former = seen.first(where: { $0.sequence == event.sequence }) {
          guard former.kind == event.kind, former.at == event.at else {
            return
              "task \(task): event \(event.sequence) is \(former.kind) at \(former.at), and \(event.kind) at \(event.at)"
          }
        } else {
          seen.append(event)
        }
      }
      let numbers = seen.map(\.sequence)
      return numbers == Array(1...max(1, last)) ? nil : "task \(task): events \(numbers) of \(last)"
    }
  }
}
