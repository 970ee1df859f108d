import CommandLineKit
import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore
import TransferEngine
import WorkerOptions

/// Everything about a task, one field per line.
enum TaskDetails {
  static func lines(_ report: TaskReport) -> [String] {
    let task = report.task
    let rows =
      identity(task) + wishes(task.spec) + (report.waits.map { [("waits", $0)] } ?? []) + progress(task)
      + recorded(report) + times(task) + outcome(task) + hooks(report)
    let names = rows.map { DisplayWidth.printable($0.0) }
    let width = names.map { DisplayWidth.of($0) }.max() ?? 0
    return zip(names, rows).map { name, row in
      DisplayWidth.fit(name, to: width + 2) + DisplayWidth.printable(row.1)
    }
  }

  /// The beginning of a JSON value; `--json` shows all of it.
  private static func shown(_ json: [UInt8]) -> String {
    let limit = 1000
    return String(decoding: json.prefix(limit), as: UTF8.self) + (json.count > limit ? "…" : "")
  }

  private static func identity(_ task: TaskDocument) -> [(String, String)] {
    let spec = task.spec
    var rows = [
      ("task", "\(spec.id)"), ("title", task.title), ("kind", spec.kind.rawValue), ("state", task.status),
      ("source", URLRedaction.redact(spec.source)), ("destination", URLRedaction.redact(spec.destination ?? "")),
      ("queue", spec.queue), ("priority", "\(spec.priority)"),
    ]
    if !spec.after.isEmpty { rows.append(("after", spec.after.map { "\($0)" }.joined(separator: " "))) }
    if let parameters = spec.parameters { rows.append(("parameters", shown(parameters))) }
    for (key, value) in spec.labels.sorted(by: { $0.key < $1.key }) where key != "title" {
      rows.append(("label \(key)", value))
    }
    return rows
  }

  /// The other settings of the task. Only the names of headers are shown, because their values may be secrets.
  private static func wishes(_ spec: TaskSpec) -> [(String, String)] {
    let texts = [
      ("not before", spec.notBefore.map { "\($0)" }),
      ("expected sha256", spec.expect.sha256.map { Hex.encode($0) }),
      ("expected md5", spec.expect.md5.map { Hex.encode($0) }),
      ("expected bytes", spec.expect.bytes.map { "\($0)" }),
      ("if exists", spec.ifExists == .fail ? nil : spec.ifExists.rawValue),
      ("rate limit", spec.rate.map { ByteCount($0).rate }),
      ("connections", spec.connections == TaskSpec.standardConnections ? nil : "at most \(spec.connections)"),
      ("headers", list(spec.headers.map(\.name))),
      ("credential", spec.credential),
      ("retry after", list(spec.retry.intervals.map { "\($0) s" })),
      ("allow unframed", spec.allowUnframed ? "yes" : nil),
      ("web hook", spec.notify.map(URLRedaction.redact)),
    ]
    return texts.compactMap { name, text in text.map { (name, $0) } }
  }

  /// The events that its web hook has not got.
  private static func hooks(_ report: TaskReport) -> [(String, String)] {
    report.hooks.map { hook in
      let state =
        hook.gaveUpAt.map { "given up \($0.relative)" }
        ?? (hook.attempt == 0 ? "waits" : "attempt \(hook.attempt), the next \(hook.runAt.relative)")
      return ("hook \(hook.event.kind.rawValue)", state + (hook.error.map { ": \($0)" } ?? ""))
    }
  }

  private static func list(_ items: [String]) -> String? {
    items.isEmpty ? nil : items.joined(separator: ", ")
  }

  private static func progress(_ task: TaskDocument) -> [(String, String)] {
    var rows: [(String, String)] = []
    if task.bytesDone > 0 || task.bytesTotal != nil {
      let total = task.bytesTotal.map { " of \(ByteCount($0)) (\($0) bytes)" } ?? ""
      rows.append(("bytes", "\(ByteCount(task.bytesDone))\(total)"))
    }
    if task.state == .running, let rate = task.rate { rows.append(("rate", ByteCount(rate).rate)) }
    if let eta = task.eta { rows.append(("eta", DurationText.clock(seconds: eta))) }
    rows.append(("attempt", attempts(task)))
    if let worker = task.worker {
      rows.append((task.state.isOwned ? "worker" : "last worker", "\(worker) (epoch \(task.epoch))"))
    }
    if task.generation > 0 { rows.append(("generation", "\(task.generation)")) }
    return rows
  }

  /// Of an own kind, only its workers know how many attempts its policy allows where the task has the standard number.
  private static func attempts(_ task: TaskDocument) -> String {
    let most = task.spec.retry.maxAttempts
    let isKnown = TaskKind.standard.contains(task.spec.kind) || most != RetryPolicy().maxAttempts
    return "\(task.attempt)" + (isKnown ? " of \(most)" : "")
  }

  private static func recorded(_ report: TaskReport) -> [(String, String)] {
    switch report.recorded {
    case .ranges(let done, let size?) where size > 0 && !done.isEmpty:
      return [("map", map(done, of: size))]
    case .parts(let done, let plan, let size) where plan.segments(of: size) > 1:
      let count = "\(plan.segments(in: done, of: size)) of \(plan.segments(of: size))"
      let row = ("parts", "\(count), of \(ByteCount(plan.segmentSize))")
      return done.isEmpty ? [row] : [row, ("map", map(done, of: size))]
    default: return []
    }
  }

  /// Fifty equal pieces of the file: `#` is recorded, `+` partly, `.` not at all.
  private static func map(_ done: ByteRanges, of size: Int64) -> String {
    let count: Int64 = min(50, size)
    let cells = (0..<count).map { cell in
      // Without overflow for any size.
      let (share, rest) = size.quotientAndRemainder(dividingBy: count)
      let bounds = [cell, cell + 1].map { $0 * share + $0 * rest / count }
      let missing = done.missing(in: bounds[0]..<bounds[1]).count
      return missing == 0 ? "#" : missing < bounds[1] - bounds[0] ? "+" : "."
    }
    return "[\(cells.joined())]"
  }

  private static func times(_ task: TaskDocument) -> [(String, String)] {
    [
      ("created", task.createdAt), ("started", task.startedAt), ("runs", task.runAt), ("finished", task.finishedAt),
    ].compactMap { name, time in time.map { (name, "\($0) (\($0.relative))") } }
  }

  /// The output; that of an upload or copy line by line. Its bytes are those of the task.
  private static func result(_ output: [UInt8], of kind: TaskKind) -> [(String, String)] {
    guard [.upload, .copy].contains(kind), let upload = try? UploadOutput(json: output) else {
      return [("output", shown(output))]
    }
    let texts = [
      ("location", URLRedaction.redact(upload.location)), ("etag", upload.etag), ("version", upload.versionID),
      ("verified", upload.verified.rawValue), ("remark", upload.remark),
    ]
    return texts.compactMap { name, text in text.map { (name, $0) } }
  }

  private static func outcome(_ task: TaskDocument) -> [(String, String)] {
    var rows: [(String, String)] = []
    if let digest = task.sha256 { rows.append(("sha256", Hex.encode(digest))) }
    if let output = task.output { rows += result(output, of: task.spec.kind) }
    if let error = task.error, task.state != .succeeded {
      let wait = error.retryAfter.map { seconds in
        " (asked to wait \(seconds) s\(seconds < RetryPolicy.longestRetryAfter ? "" : " or more"))"
      }
      rows.append((task.hasLeftErrorBehind ? "last error" : "error", "\(error.code): \(error.message)\(wait ?? "")"))
    }
    if let advice = FailureAdvice.of(task) { rows.append(("advice", advice)) }
    return rows
  }
}
