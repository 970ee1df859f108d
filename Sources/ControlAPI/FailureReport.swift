import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore

/// A group of failed tasks, with one of them as an example.
struct FailureReport {
  /// What the groups have in common.
  enum Key: String, CaseIterable {
    case code, host
  }

  /// Its host is empty if there are several.
  var group: FailureGroup
  /// How many failed at each host, the most first.
  var hosts: [(name: String, tasks: Int)]
  var example: TaskDocument?
  /// The only queues whose tasks are counted; of all, if it is empty.
  var queues: Set<String> = []

  /// The group that failed last first, of tasks with the same code and, unless they are grouped by code, the same host.
  /// If `key` is nil, they are grouped by code only if there are more groups than `limit` otherwise. The tasks may go
  /// between the two reads.
  static func read(
    by key: Key?, queues: Set<String>, limit: Int = 1000, from store: any ControlStore
  ) async throws -> [FailureReport] {
    let groups = try await store.failures(queues: queues)
    let isByCode = key == .code || key == nil && groups.count > limit
    let reports = (isByCode ? byCode(groups) : groups.map { FailureReport([$0]) }).prefix(limit)
    let examples = try await store.tasks(reports.map(\.group.taskID))
    return reports.map { report in
      var report = report
      report.example = examples[report.group.taskID]
      report.queues = queues
      return report
    }
  }

  /// In the order of the newest of each.
  private static func byCode(_ groups: [FailureGroup]) -> [FailureReport] {
    Dictionary(grouping: groups, by: \.code).values.map(FailureReport.init).sorted {
      ($1.group.newestAt, $0.group.code.rawValue) < ($0.group.newestAt, $1.group.code.rawValue)
    }
  }

  /// `parts` are of one code, the newest first.
  private init(_ parts: [FailureGroup]) {
    group = parts[0]
    group.tasks = parts.reduce(0) { $0 + $1.tasks }
    group.isAtLeast = parts.contains(where: \.isAtLeast)
    if parts.count > 1 { group.host = "" }
    hosts = parts.filter { !$0.host.isEmpty }.map { ($0.host, $0.tasks) }.sorted { ($1.1, $0.0) < ($0.1, $1.0) }
  }

  /// The command that tries all of them again needs the same filter as the group.
  private var advice: String? {
    guard let example else { return nil }
    var filter = "--all --state failed --code \(group.code.rawValue)"
    if !group.host.isEmpty { filter += " --host \(group.host)" }
    for queue in queues.sorted() { filter += " --queue \(queue)" }
    return FailureAdvice.of(example, retrying: group.tasks > 1 ? filter : nil)
  }

  /// Writes at most `mostHosts` hosts.
  func write(to json: inout JSONWriter, mostHosts: Int = 100) {
    json.object { json in
      json.member("code", group.code.rawValue)
      json.member("host", group.host)
      json.member("count", group.tasks)
      json.member("isAtLeast", group.isAtLeast)
      json.member("newestAt", group.newestAt)
      json.member("taskId", group.taskID)
      json.member("message", orNull: example?.error?.message)
      json.member("advice", orNull: advice)
      json.member("hostCount", hosts.count)
      json.name("hosts")
      json.array { json in
        for host in hosts.prefix(mostHosts) {
          json.object { json in
            json.member("host", host.name)
            json.member("count", host.tasks)
          }
        }
      }
    }
  }
}
