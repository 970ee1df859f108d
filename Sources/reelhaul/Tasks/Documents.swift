import CommandLineKit
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore
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
    documents(reports) { TaskReport.write($0, to: &$1) }
  }

  func json(_ workers: [WorkerDocument]) {
    documents(workers, WorkerDocumentJSON.write)
  }

  func json(_ use: LimitUse) {
    document { use.write(to: &$0) }
  }

  func json(_ uses: [LimitUse]) {
    documents(uses) { $0.write(to: &$1) }
  }
}
