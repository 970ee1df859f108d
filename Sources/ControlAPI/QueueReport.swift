import ReelhaulCodec
import TaskCore
import TaskStore

/// A queue, its tasks and its share.
struct QueueReport: Equatable {
  var queue: String
  var weight = 1.0
  var limit: Int?
  var counts: [TaskState: Int] = [:]
  /// Nil if no task of it could run now.
  var oldest: Duration?

  private var unfinished: Int { counts.reduce(0) { $0 + ($1.key.isFinal ? 0 : $1.value) } }

  /// Those with the most unfinished tasks first.
  static func of(_ counts: [TaskCount], limits: [LimitUse], oldest: [String: Duration]) -> [QueueReport] {
    var reports: [String: QueueReport] = [:]
    for count in counts {
      reports[count.queue, default: QueueReport(queue: count.queue)].counts[count.state, default: 0] += count.tasks
    }
    for limit in limits where limit.scope == .queue {
      reports[limit.name, default: QueueReport(queue: limit.name)].limit = limit.limit
      reports[limit.name]?.weight = limit.weight ?? 1
    }
    for (queue, age) in oldest { reports[queue]?.oldest = age }
    return reports.values.sorted { ($1.unfinished, $0.queue) < ($0.unfinished, $1.queue) }
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("queue", queue)
      json.name("weight")
      json.double(weight)
      json.member("limit", orNull: limit.map(Int64.init))
      json.member("running", (counts[.running] ?? 0) + (counts[.publishing] ?? 0))
      json.name("counts")
      TaskState.write(counts, to: &json)
      json.member("oldestRunnableAgeSeconds", orNull: oldest.map { $0.components.seconds })
    }
  }
}
