/// A span of a distributed trace, as W3C Trace Context (level 1) passes it on.
///
///     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
public struct TraceContext: Hashable, Sendable {
  /// The most bytes of a `tracestate`.
  public static let stateLimit = 512

  /// The trace: 16 bytes, never all 0.
  public var traceID: UniqueID
  /// The span: 8 bytes, never all 0.
  public var spanID: UInt64
  /// Whether whoever began the trace records it.
  public var isSampled: Bool
  /// The `tracestate`, which is passed on as it came.
  public var state: String?

  public init(traceID: UniqueID, spanID: UInt64, isSampled: Bool, state: String? = nil) {
    self.traceID = traceID
    self.spanID = spanID
    self.isSampled = isSampled
    self.state = state
  }

  /// Reads a `traceparent` of any version; nil if it is not valid: a later version may say more, in visible ASCII. A
  /// `tracestate` that may not be passed on is dropped.
  public init?(traceparent text: String, tracestate: String? = nil) {
    // PostgreSQL keeps a NUL in a document, and then refuses to read any of it.
    guard text.utf8.count <= 256, text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
    let parts = Array(text.utf8).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[0].count == 2, parts[1].count == 32, parts[2].count == 16, parts[3].count == 2,
      let version = Self.number(parts[0]), version != 0xFF, version > 0 || parts.count == 4,
      let high = Self.number(parts[1].prefix(16)), let low = Self.number(parts[1].suffix(16)), high | low != 0,
      let span = Self.number(parts[2]), span != 0, let flags = Self.number(parts[3])
    else { return nil }
    self.init(
      traceID: UniqueID(high: high, low: low), spanID: span, isSampled: flags & 1 == 1,
      state: tracestate.flatMap { Self.isState($0) ? $0 : nil })
  }

  /// The header field that passes it on.
  public var traceparent: String { "00-\(trace)-\(span)-\(isSampled ? "01" : "00")" }

  /// The trace as 32 hexadecimal digits.
  public var trace: String { Self.digits(traceID.high) + Self.digits(traceID.low) }

  /// The span as 16 hexadecimal digits.
  public var span: String { Self.digits(spanID) }

  /// A new span of the same trace.
  package func child() -> TraceContext {
    var child = self
    child.spanID = .random(in: 1 ... .max)
    return child
  }

  /// Whether it may be passed on as a `tracestate`: visible ASCII and spaces, not too many.
  static func isState(_ text: String) -> Bool {
    1...stateLimit ~= text.utf8.count && text.utf8.allSatisfy { 0x20..<0x7F ~= $0 }
  }

  package static func digits(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Only lower-case digits are valid.
  private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
    digits.reduce(UInt64?.some(0)) { number, byte in
      guard let number, byte < UInt8(ascii: "A") || byte > UInt8(ascii: "F"),
        let digit = PercentEncoding.hexDigit(byte)
      else { return nil }
      return number << 4 | UInt64(digit)
    }
  }
}

extension TaskSpec {
  /// The span in which the task was submitted.
  public var trace: TraceContext? {
    get { traceparent.flatMap { TraceContext(traceparent: $0, tracestate: tracestate) } }
    set { (traceparent, tracestate) = (newValue?.traceparent, newValue?.state) }
  }
}
