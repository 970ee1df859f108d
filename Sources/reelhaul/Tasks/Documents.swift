import Codec
import CommandLineKit
import Messages
import TaskCore

/// Documents on standard output, as JSON.
extension Output {
  func json(_ task: TaskDocument) {
    document { TaskDocumentJSON.write(task, to: &$0) }
  }

  func json(_ tasks: [TaskDocument]) {
    document { json in
      json.array { json in
        for task in tasks { TaskDocumentJSON.write(task, to: &json) }
      }
    }
  }

  func json(_ workers: [WorkerDocument]) {
    document { json in
      json.array { json in
        for worker in workers { WorkerDocumentJSON.write(worker, to: &json) }
      }
    }
  }

  /// One JSON value and a line break.
  func document(_ body: (inout JSONWriter) -> Void) {
    let bytes = JSONWriter.write(capacity: 4096, body) + [UInt8(ascii: "\n")]
    bytes.withUnsafeBytes { write($0) }
  }
}
