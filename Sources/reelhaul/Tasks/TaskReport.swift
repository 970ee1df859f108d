import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

/// A task with what is known of it beside its document: all that `show` tells.
struct TaskReport {
  let task: TaskDocument
  /// What it waits for, other than its time or its turn.
  let waits: String?

  static func of(_ tasks: [TaskDocument], in store: any TaskReader & FleetReader) async throws -> [TaskReport] {
    let reasons = try await WaitReason.of(tasks, in: store)
    return tasks.map { TaskReport(task: $0, waits: reasons[$0.spec.id]) }
  }

  /// The document, and `status`, `waits` and `spec` besides. Of headers the names: their values may be anybody's secrets.
  static func write(_ report: TaskReport, to json: inout JSONWriter) {
    let spec = report.task.spec
    TaskDocumentJSON.write(report.task, to: &json) { json in
      json.member("status", report.task.status)
      json.member("waits", orNull: report.waits)
      json.name("spec")
      json.object { json in
        json.member("notBefore", orNull: spec.notBefore)
        TaskSpecJSON.write(object: "expect", of: spec, to: &json)
        json.member("ifExists", spec.ifExists.rawValue)
        json.member("headers", spec.headers.map(\.name))
        json.member("retryAfter", spec.retry.intervals)
        json.member("rate", orNull: spec.rate)
        json.member("credential", orNull: spec.credential)
      }
    }
  }
}
