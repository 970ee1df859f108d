import ReelhaulKafka
import TaskCore

/// A hint on the `signals` topic: there is an intent for a running task.
///
/// It only names the task. The intent is in the store, so a lost, repeated, late or forged signal costs a renewal and
/// changes nothing else.
package struct Signal: Hashable, Sendable {
  package var taskID: UniqueID

  package init(taskID: UniqueID) {
    self.taskID = taskID
  }

  /// The signal of a record with this key; nil if the key is not a task id.
  package init?(key: [UInt8]?) {
    guard let key, let taskID = UniqueID(String(decoding: key, as: UTF8.self)) else { return nil }
    self.taskID = taskID
  }

  package func message(topic: String) -> KafkaMessage {
    let id = taskID.description
    return KafkaMessage(topic: topic, key: Array(id.utf8), value: Array(#"{"taskId":"\#(id)"}"#.utf8))
  }
}

/// The source of signals: a reader of all partitions, or a test's list.
package protocol SignalSource: Sendable {
  /// Waits for signals; `nil` once the source is closed.
  func next() async throws -> [Signal]?
}
