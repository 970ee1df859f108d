import ReelhaulSystem
import TaskCore

/// Makes spans and keeps those that have ended until an exporter takes them. Any thread may call it.
package final class Tracer: Sendable {
  private struct Ended {
    var spans: [Span] = []
    var dropped = 0
  }

  private let sampler: Sampler
  private let capacity: Int
  private let batch: Int
  private let ended = Lock(Ended())
  private let full: Lock<(@Sendable () -> Void)?> = Lock(nil)

  /// - Parameters:
  ///   - capacity: Further spans are dropped and counted.
  ///   - batch: So many are worth to be taken at once.
  package init(sampler: Sampler, capacity: Int = 2048, batch: Int = 512) {
    self.sampler = sampler
    self.capacity = capacity
    self.batch = batch
  }

  /// Called whenever a batch has come together.
  package func onBatch(_ body: @escaping @Sendable () -> Void) { full.withLock { $0 = body } }

  /// A new span below `parent`, or at the root of a new trace.
  package func begin(below parent: TraceContext?) -> TraceContext {
    var context =
      parent?.child()
      ?? TraceContext(
        traceID: UniqueID(high: .random(in: 1 ... .max), low: .random(in: 1 ... .max)), spanID: .random(in: 1 ... .max),
        isSampled: false)
    context.isSampled = sampler.samples(context.traceID, parent: parent?.isSampled)
    return context
  }

  /// The span of a task's life. A task that was not submitted in a trace has one of its own, whose id is the task's.
  package func life(of spec: TaskSpec) -> TraceContext {
    var context = Self.life(of: spec) ?? TraceContext(traceID: spec.id, spanID: spec.id.low, isSampled: false)
    context.isSampled = sampler.samples(context.traceID, parent: spec.trace?.isSampled)
    return context
  }

  /// The same without a tracer: nil if the task was not submitted in a trace.
  package static func life(of spec: TaskSpec) -> TraceContext? {
    guard var context = spec.trace else { return nil }
    // Whoever runs the task, at whatever attempt, has to name the same span.
    context.spanID = max(1, spec.id.low)
    return context
  }

  /// Keeps a span that has ended, if its trace is recorded.
  package func record(_ span: @autoclosure () -> Span, of context: TraceContext) {
    guard context.isSampled else { return }
    let span = span()
    let isBatch = ended.withLock { ended in
      guard ended.spans.count < capacity else {
        ended.dropped += 1
        return false
      }
      ended.spans.append(span)
      return ended.spans.count == batch
    }
    if isBatch { full.withLock { $0 }?() }
  }

  /// Up to a batch of spans, the oldest first, and how many were dropped since the last call.
  package func take() -> (spans: [Span], dropped: Int) {
    ended.withLock { ended in
      let spans = Array(ended.spans.prefix(batch))
      ended.spans.removeFirst(spans.count)
      defer { ended.dropped = 0 }
      return (spans, ended.dropped)
    }
  }

  package var isEmpty: Bool { ended.withLock { $0.spans.isEmpty } }
}

extension TraceContext {
  /// What every log line of the span has.
  package var logFields: [(String, LogValue)] { [("trace_id", .text(trace)), ("span_id", .text(span))] }
}
