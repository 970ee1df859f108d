import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

/// Prints documents as JSON.
extension Output {
  func json(_ task: TaskDocument) {
    document { TaskDocumentJSON.write(task, to: &$0) }
  }

  func json(_ report: TaskReport) {
    document { TaskReport.write(report, to: &$0) }
  }

  func json(_ reports: [TaskReport]) {
    documents(reports, TaskReport.write)
  }

  func json(_ workers: [WorkerDocument]) {
    documents(workers, WorkerDocumentJSON.write)
  }
}
