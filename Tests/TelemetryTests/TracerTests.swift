import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import Testing

@Suite struct TracerTests {
  private func spec(_ traceparent: String? = nil) -> TaskSpec {
    var spec = TaskSpec(id: UniqueID("0190a7d2-1111-7222-8333-444455556666")!, kind: .noop, source: "noop:")
    spec.traceparent = traceparent
    return spec
  }

  private func span(_ context: TraceContext) -> Span {
    Span(context, parent: nil, name: "a", start: Timestamp(microseconds: 1), end: Timestamp(microseconds: 2))
  }

  @Test("a part of all traces is recorded, the same ones by whoever decides") func ratio() {
    var random = SplitMix64(seed: 3)
    let traces = (0..<4000).map { _ in
      UniqueID(milliseconds: 1_700_000_000_000, using: &random)
    }
    let quarter = traces.filter { Sampler.ratio(0.25).samples($0) }
    #expect((900...1100).contains(quarter.count))
    #expect(quarter.allSatisfy { Sampler.ratio(0.5).samples($0) && Sampler.ratio(0.25).samples($0, parent: false) })
    #expect(traces.allSatisfy { Sampler.ratio(1).samples($0) && !Sampler.ratio(0).samples($0) })
  }

  @Test("with parentbased, others' traces are recorded as they say, and own ones by the rule") func parentBased() {
    let sampler = Sampler.parentBased(root: .never)
    let trace = UniqueID(high: 1, low: 1)
    #expect(sampler.samples(trace, parent: true) && !sampler.samples(trace, parent: false) && !sampler.samples(trace))
  }

  @Test("every worker names the same span for the life of a task, in the trace of its submit or in one of its own")
  func life() {
    let tracer = Tracer(sampler: .parentBased(root: .always))
    let own = tracer.life(of: spec())
    #expect(own == Tracer(sampler: .always).life(of: spec()) && own.trace == "0190a7d2111172228333444455556666")
    #expect(own.isSampled && Tracer.life(of: spec()) == nil)
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    let submitted = tracer.life(of: spec(parent))
    #expect(submitted.trace == "4bf92f3577b34da6a3ce929d0e0e4736" && !submitted.isSampled)
    #expect(submitted.spanID == own.spanID && Tracer.life(of: spec(parent))?.spanID == own.spanID)
  }

  @Test("spans come out in order and in batches; what is too much is dropped and counted, and so is nothing unsampled")
  func bounded() {
    let tracer = Tracer(sampler: .always, capacity: 5, batch: 2)
    let batches = Lock(0)
    tracer.onBatch { batches.withLock { $0 += 1 } }
    var sampled = tracer.begin(below: nil)
    var other = sampled
    other.isSampled = false
    for number in 1...7 {
      sampled.spanID = UInt64(number)
      tracer.record(span(sampled), of: sampled)
      tracer.record(span(other), of: other)
    }
    #expect(batches.withLock { $0 } == 1)
    let first = tracer.take()
    #expect(first.spans.map(\.context.spanID) == [1, 2] && first.dropped == 2)
    #expect(tracer.take().spans.count == 2 && tracer.take().spans.count == 1 && tracer.isEmpty)
    #expect(tracer.take().dropped == 0)
  }
}
