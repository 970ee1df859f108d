import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore

/// A task's document, and what `show` tells in addition.
package struct TaskReport {
  package let task: TaskDocument
  /// What the task waits for, except its time or its turn.
  package let waits: String?
  package let recorded: RecordedWork?
  /// The events that its web hook has not got.
  package let hooks: [HookDelivery]

  package init(task: TaskDocument, waits: String?, recorded: RecordedWork? = nil, hooks: [HookDelivery] = []) {
    self.task = task
    self.waits = waits
    self.recorded = recorded
    self.hooks = hooks
  }

  /// With what is recorded of the task's work.
  package static func of(
    _ task: TaskDocument, in store: any TaskReader & FleetReader & HookStore
  ) async throws -> TaskReport {
    let checkpoint = try await store.checkpoint(of: task.spec.id)
    return TaskReport(
      task: task, waits: try await WaitReason.of([task], in: store)[task.spec.id],
      recorded: checkpoint.flatMap { RecordedWork($0, of: task.spec.kind) },
      hooks: try await store.undeliveredHooks(of: task.spec.id))
  }

  package static func of(_ tasks: [TaskDocument], in store: any TaskReader & FleetReader) async throws -> [TaskReport] {
    let reasons = try await WaitReason.of(tasks, in: store)
    return tasks.map { TaskReport(task: $0, waits: reasons[$0.spec.id]) }
  }

  /// The names of the members that ``write(only:to:)`` writes.
  package static let members = [
    "id", "kind", "state", "priority", "queue", "source", "destination", "bytesTotal", "bytesDone", "rate", "eta",
    "attempt", "maxAttempts", "worker", "epoch", "generation", "sequence", "createdAt", "startedAt", "finishedAt",
    "runAt", "digest", "output", "error", "after", "labels", "parameters", "status", "waits", "spec",
  ]

  /// Writes only these members of ``members``, in their order; all if `only` is empty.
  package func write(only names: Set<String>, to json: inout JSONWriter) {
    guard !names.isEmpty else { return write(to: &json) }
    let whole = JSONWriter.write(capacity: 1024) { write(to: &$0) }
    var members: [(name: String, value: [UInt8])] = []
    // It is of our own making, so it can be read.
    try? JSONReader.read(whole) { reader throws(DecodingFailure) in
      try reader.object(withNulls: true) { reader, name throws(DecodingFailure) in
        if names.contains(name.text) {
          members.append((name.text, try reader.raw()))
        } else {
          try reader.skip()
        }
      }
    }
    json.object { json in
      for member in members {
        json.name(member.name)
        json.raw(member.value)
      }
    }
  }

  /// Writes the document with `status`, `waits`, `spec` and, of what is recorded, `ranges` (half-open) or `parts`. Only
  /// the names of headers are written, because their values may be secrets. `advice` says what to do about its failure.
  package func write(advice: String? = nil, to json: inout JSONWriter) {
    let spec = task.spec
    TaskDocumentJSON.write(task, to: &json) { json in
      json.member("status", task.status)
      json.member("waits", orNull: waits)
      json.member("advice", advice)
      recorded?.write(to: &json)
      writeHooks(to: &json)
      json.name("spec")
      json.object { json in
        json.member("notBefore", orNull: spec.notBefore)
        TaskSpecJSON.write(object: "expect", of: spec, to: &json)
        json.member("ifExists", spec.ifExists.rawValue)
        json.member("headers", spec.headers.map(\.name))
        json.member("retryAfter", spec.retry.intervals)
        json.member("rate", orNull: spec.rate)
        json.member("connections", spec.connections)
        json.member("credential", orNull: spec.credential)
        json.member("allowUnframed", spec.allowUnframed)
        json.member("notify", orNull: spec.notify.map(URLRedaction.redact))
        json.member("traceparent", orNull: spec.traceparent)
        json.member("tracestate", orNull: spec.tracestate)
      }
    }
  }
}

extension TaskReport {
  /// Writes `hooks`, if events wait for their web hook, or were given up.
  private func writeHooks(to json: inout JSONWriter) {
    guard !hooks.isEmpty else { return }
    json.name("hooks")
    json.array { json in
      for hook in hooks {
        json.object { json in
          json.member("sequence", hook.event.sequence)
          json.member("type", hook.event.kind.rawValue)
          json.member("host", hook.event.host)
          json.member("attempt", hook.attempt)
          json.member("runAt", orNull: hook.gaveUpAt == nil ? hook.runAt : nil)
          json.member("error", orNull: hook.error)
          json.member("gaveUpAt", orNull: hook.gaveUpAt)
        }
      }
    }
  }
}

extension TaskDocument {
  /// The state in the words of `list --state`.
  package var status: String { status(now: Timestamp(microseconds: Clocks.realtimeMicroseconds())).rawValue }
}
