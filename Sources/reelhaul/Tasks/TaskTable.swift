import CommandLineKit
import TaskCore

extension Table {
  /// One row for each task.
  static func tasks(_ documents: [TaskDocument]) -> Table {
    var table = Table([
      .init("TASK"), .init("STATE"), .init("DONE", right: true), .init("SIZE", right: true, leaves: 3),
      .init("RATE", right: true, leaves: 4), .init("ETA", right: true, leaves: 5),
      .init("PRIO", right: true, leaves: 1), .init("QUEUE", leaves: 2), .init("TITLE", shrinks: true, leaves: 6),
    ])
    for task in documents {
      table.add([
        "\(task.spec.id)", task.status, percent(task), task.bytesTotal.map { "\(ByteCount($0))" } ?? "",
        task.state == .running ? task.rate.map { ByteCount($0).rate } ?? "" : "",
        task.eta.map { DurationText.clock(seconds: $0) } ?? "", "\(task.spec.priority)", task.spec.queue, task.title,
      ])
    }
    return table
  }

  private static func percent(_ task: TaskDocument) -> String {
    if task.state == .succeeded { return "100%" }
    guard let total = task.bytesTotal, total > 0 else { return "" }
    return "\(Int(Double(task.bytesDone) / Double(total) * 100))%"
  }
}
