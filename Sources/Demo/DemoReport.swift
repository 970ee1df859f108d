import CommandLineKit
import TaskCore

/// The result of each of the demo's films, and whether it is as expected.
struct DemoReport {
  struct Line {
    var film: DemoFilm
    var task: TaskDocument
    /// The size of the origin's file.
    var originSize: Int64
    var originSHA256: [UInt8]
    /// The digest of the downloaded file, or of the object as another client reads it; nil if there is none.
    var fileSHA256: [UInt8]?
    /// The body bytes that the origin sent for the film; nil of an upload.
    var sent: Int64?
    /// The workers that owned the task, in order.
    var workers: [String]

    /// Bytes that were fetched more than once.
    var again: Int64 { max(0, (sent ?? 0) - originSize) }

    /// What is wrong; nil if everything is as expected.
    var complaint: String? {
      if film.role == .canceled {
        if task.state != .canceled { return "\(task.state.rawValue), not canceled" }
        return fileSHA256 == nil ? nil : "canceled, but the file is there"
      }
      if task.state != .succeeded { return task.error.map { "\($0.code): \($0.message)" } ?? task.state.rawValue }
      if fileSHA256 != originSHA256 { return fileSHA256 == nil ? "no file" : "the file differs from the origin's" }
      if film.kind == .download, task.sha256 != originSHA256 { return "the task's SHA-256 differs from the origin's" }
      guard film.role == .killed else { return nil }
      if workers.count < 2 { return "no other worker took it over" }
      // Its worker may have died twice, because each kill takes all that a worker runs.
      if again > DemoReport.limit * Int64(workers.count - 1) { return "more than 128 MiB fetched again after a kill" }
      return nil
    }
  }

  /// A kill costs 64 MiB or 2 s of a transfer that were not recorded, and what was on its way on 16 connections.
  static let limit: Int64 = 128 << 20

  let lines: [Line]
  /// What is wrong in addition to the complaints of the lines.
  let complaints: [String]

  var isGood: Bool { complaints.isEmpty && lines.allSatisfy { $0.complaint == nil } }

  static let legend =
    "REFETCHED: bytes that the origin sent more than once, after the kill or when a range was split while it was on its way. What is in S3 was read back with rclone."

  var table: Table {
    var table = Table([
      .init("TASK"), .init("STATE"), .init("BYTES", right: true), .init("REFETCHED", right: true),
      .init("WORKERS", shrinks: true), .init("SHA-256"), .init("NOTE"),
    ])
    for line in lines {
      table.add([
        line.film.title, line.task.state.rawValue, "\(line.task.bytesDone)",
        line.film.role == .canceled || line.sent == nil ? "" : "\(line.again)", line.workers.joined(separator: " → "),
        digest(line),
        story(line),
      ])
    }
    return table
  }

  private func digest(_ line: Line) -> String {
    if line.film.role == .canceled { return "no file" }
    let isEqual = line.fileSHA256 == line.originSHA256
    return isEqual && (line.film.kind != .download || line.task.sha256 == line.originSHA256) ? "equal" : "DIFFERS"
  }

  private func story(_ line: Line) -> String {
    if let complaint = line.complaint { return "WRONG: \(complaint)" }
    return switch line.film.role {
    case .plain: ""
    case .paused: "paused, resumed"
    case .canceled: "canceled"
    case .killed: "worker killed"
    }
  }
}
