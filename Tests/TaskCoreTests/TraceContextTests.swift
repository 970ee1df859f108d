import Testing

@testable import TaskCore

/// W3C Trace Context, level 1.
@Suite struct TraceContextTests {
  private static let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  @Test("a traceparent is read and written as it came") func roundTrip() throws {
    let context = try #require(TraceContext(traceparent: Self.parent, tracestate: "vendor=a,other=b"))
    #expect(context.traceparent == Self.parent && context.state == "vendor=a,other=b" && context.isSampled)
    #expect(context.trace == "4bf92f3577b34da6a3ce929d0e0e4736" && context.span == "00f067aa0ba902b7")
    let quiet = try #require(TraceContext(traceparent: String(Self.parent.dropLast()) + "0"))
    #expect(!quiet.isSampled && quiet.traceparent.hasSuffix("-00"))
    let child = context.child()
    #expect(child.traceID == context.traceID && child.spanID != context.spanID && child.state == context.state)
  }

  @Test(
    "what is no valid traceparent is none",
    arguments: [
      "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
      "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
      "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-+0f067aa0ba902b7-01",
      "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-\0",
      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-a b",
      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-" + String(repeating: "a", count: 201),
      "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
    ]) func invalid(_ text: String)
  { #expect(TraceContext(traceparent: text) == nil) }

  @Test("of a later version what is known is read, and other flags are not passed on") func later() throws {
    let context = try #require(
      TraceContext(traceparent: "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-comes"))
    #expect(context.isSampled && context.traceparent == Self.parent)
  }

  @Test("a tracestate that may not be passed on is dropped; the task's own is refused") func state() throws {
    for wrong in ["", "a=\u{7}", "a=ü", String(repeating: "x", count: 513)] {
      #expect(TraceContext(traceparent: Self.parent, tracestate: wrong)?.state == nil)
    }
    var spec = TaskSpec(id: UniqueID(high: 1, low: 2), kind: .noop, source: "noop:")
    spec.tracestate = "a=\u{7}"
    #expect(throws: InvalidTask.self) { try spec.validate() }
    spec.tracestate = "a=b"
    spec.traceparent = "00-nonsense"
    #expect(throws: InvalidTask.self) { try spec.validate() }
    spec.traceparent = Self.parent
    try spec.validate()
    #expect(spec.trace?.state == "a=b")
  }
}
