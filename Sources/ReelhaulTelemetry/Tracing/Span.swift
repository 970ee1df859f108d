import TaskCore

/// One step of a trace, with its end.
package struct Span: Sendable {
  /// Of OpenTelemetry, with its numbers.
  package enum Kind: Int, Sendable {
    case `internal` = 1
    case server, client, producer, consumer
  }

  package var context: TraceContext
  /// The span that it is a part of; nil at the root of a trace.
  package var parent: UInt64?
  /// One of few: no ids.
  package var name: String
  package var kind: Kind
  package var start: Timestamp
  package var end: Timestamp
  package var attributes: [(String, LogValue)]
  /// What went wrong; nil if nothing did.
  package var error: String?

  package init(
    _ context: TraceContext, parent: UInt64?, name: String, kind: Kind = .internal, start: Timestamp, end: Timestamp,
    attributes: [(String, LogValue)] = [], error: String? = nil
  ) {
    self.context = context
    self.parent = parent
    self.name = name
    self.kind = kind
    self.start = start
    self.end = end
    self.attributes = attributes
    self.error = error
  }
}

/// Which traces are recorded.
package enum Sampler: Hashable, Sendable {
  case always, never
  /// This part of all traces, in 0...1: the same ones in every process.
  case ratio(Double)
  /// Traces of others as they say, own ones as `root`.
  indirect case parentBased(root: Sampler)

  /// - Parameter parent: whether the trace is recorded where it comes from; nil if it begins here.
  package func samples(_ trace: UniqueID, parent: Bool? = nil) -> Bool {
    switch self {
    case .always: true
    case .never: false
    // The last 56 bits are random in every trace id; in a UUID of version 7 too.
    case .ratio(let ratio): Double(trace.low & 0xFF_FFFF_FFFF_FFFF) < ratio * 0x1p56
    case .parentBased(let root): parent ?? root.samples(trace)
    }
  }
}
