import CommandLineKit
import TaskAdvice
import TaskCore
import WorkerOptions

extension Table {
  /// One row for each task. There is a column for errors if a task has one.
  static func tasks(_ documents: [TaskDocument]) -> Table {
    let errors = documents.map { $0.hasLeftErrorBehind ? nil : $0.error?.code.rawValue }
    let hasErrors = errors.contains { $0 != nil }
    var columns: [Column] = [
      .init("TASK"), .init("STATE"), .init("DONE", right: true), .init("SIZE", right: true, leaves: 3),
      .init("RATE", right: true, leaves: 4), .init("ETA", right: true, leaves: 5),
      .init("PRIO", right: true, leaves: 1), .init("QUEUE", leaves: 2), .init("TITLE", shrinks: true, leaves: 6),
    ]
    if hasErrors { columns.insert(.init("ERROR", leaves: 7), at: 2) }
    var table = Table(columns)
    for (task, error) in zip(documents, errors) {
      var cells = [
        "\(task.spec.id)", task.status, task.progressItem.percent, task.bytesTotal.map { "\(ByteCount($0))" } ?? "",
        task.state == .running ? task.rate.map { ByteCount($0).rate } ?? "" : "",
        task.eta.map { DurationText.clock(seconds: $0) } ?? "", "\(task.spec.priority)", task.spec.queue, task.title,
      ]
      if hasErrors { cells.insert(error ?? "", at: 2) }
      table.add(cells)
    }
    return table
  }
}
