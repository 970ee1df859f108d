import Messages
import Postgres
import System
import TaskCore
import Testing

extension TestFleet {
  /// Every event record of the fleet, read by a program that is not ours; once the outbox is empty.
  package func events() async throws -> [TaskEvent] {
    try await eventually("the outbox is relayed") { try await pool.query("select from outbox limit 1").isEmpty }
    let directory = try TemporaryDirectory()
    var options = ChildProcess.Options()
    options.stdout = "\(directory.path)/events"
    options.stderr = "\(directory.path)/errors"
    let kcat = try ChildProcess(
      "kcat", ["-b", bootstrap, "-t", "\(prefix)events", "-C", "-o", "beginning", "-e", "-q"], options)
    guard await kcat.wait() == .exited(0) else {
      throw TestFleetError("kcat: \(String(decoding: try Self.contents("\(directory.path)/errors"), as: UTF8.self))")
    }
    return try Self.contents("\(directory.path)/events").split(separator: UInt8(ascii: "\n")).map {
      try TaskEventJSON.decode(Array($0))
    }
  }

  /// What is wrong with the events: each task's are numbered from 1 to its last, begin in this order, and those that
  /// were published again are the same.
  package func problemsOfEvents() async throws -> [String] {
    let last = try await pool.query("select id, sequence from task_document").map { row in
      let id = try row.uuid(0)
      return (UUID(high: id.high, low: id.low), Int(try row.int32(1)))
    }
    let events = Dictionary(grouping: try await events(), by: \.taskID)
    return last.compactMap { task, last in
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
