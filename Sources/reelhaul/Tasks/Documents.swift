import CommandLineKit
import ReelhaulCodec
import ReelhaulMessages
import TaskCore

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

  /// Prints one JSON value and a line break.
  func document(_ body: (inout JSONWriter) -> Void) {
    let bytes = JSONWriter.write(capacity: 4096, body) + [UInt8(ascii: "\n")]
    bytes.withUnsafeBytes { write($0) }
  }

  /// Prints an array of values.
  func documents<Element>(_ elements: [Element], _ write: (Element, inout JSONWriter) -> Void) {
    document { json in
      json.array { json in
        for element in elements { write(element, &json) }
      }
    }
  }
}
