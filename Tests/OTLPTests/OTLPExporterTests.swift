import HTTPServer
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TestKit
import Testing

@testable import OTLP

/// The exporter against a receiver that reads with OpenTelemetry's own classes.
@Suite struct OTLPExporterTests {
  private func settings(_ port: Int, _ more: [String: String] = [:]) throws -> OTLPSettings {
    let made = try OTLPSettings(
      [
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:\(port)/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b",
        "OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "100",
      ].merging(more) { $1 })
    return try #require(made)
  }

  private func span(_ tracer: Tracer, _ name: String, error: String? = nil) {
    let context = tracer.begin(
      below: TraceContext(
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate: "v=1"))
    tracer.record(
      Span(
        context, parent: 0xF0_67AA_0BA9_02B7, name: name, kind: .consumer, start: Timestamp(microseconds: 1_000_000),
        end: Timestamp(microseconds: 2_000_000),
        attributes: [("text", "a \"quoted\" ü"), ("number", 42), ("flag", true), ("part", .double(0.5))], error: error),
      of: context)
  }

  @Test("spans and metrics arrive as OpenTelemetry's own classes read them, with the headers, and the last at the end")
  func arrives() async throws {
    let receiver = try await HookReceiver { _, _ in HTTPResponse(200, type: "application/json", Array("{}".utf8)) }
    let log = Logger(level: .error)
    let exporter = OTLPExporter(try settings(receiver.port), service: "films", log: log)
    let tracer = try #require(exporter.tracer)
    let histogram = DurationHistogram("a_seconds", MetricLabel("of", ["x"]), buckets: [0.5, 1], help: "A.")
    histogram.observe(nanoseconds: 750_000_000)
    histogram.observe(nanoseconds: 5_000_000_000)
    await exporter.start {
      var metrics = MetricsSnapshot()
      metrics.add(histogram)
      metrics.add("b_bytes_total", 7, kind: .counter, help: "B.")
      metrics.add("c", 1.5, help: "C.")
      return metrics
    }
    span(tracer, "first")
    try await eventually("it has come") { receiver.posts.contains { $0.path == "/v1/traces" } }
    try await eventually("metrics too, twice") { receiver.posts.count { $0.path == "/v1/metrics" } >= 2 }
    span(tracer, "last", error: "no")
    await exporter.close()
    log.close()
    await receiver.stop()
    #expect(receiver.posts.allSatisfy { $0.headers["x-key"] == "a b" })
    let items = try OTLPReference.items(of: receiver.posts)
    let spans = items.filter { !$0.trace.isEmpty }
    #expect(spans.map(\.name) == ["first", "last"] && spans.map(\.error) == ["", "no"])
    for span in spans {
      #expect(span.trace == "4bf92f3577b34da6a3ce929d0e0e4736" && span.parent == "00f067aa0ba902b7")
      #expect(span.kind == "SPAN_KIND_CONSUMER" && span.service == "films" && span.state == "v=1")
      #expect(span.attributes == ["text": "a \"quoted\" ü", "number": "42", "flag": "True", "part": "0.5"])
    }
    let a = try #require(items.last { $0.name == "a_seconds" })
    #expect(a.kind == "histogram" && a.value == "5.75" && a.unit == "s" && a.attributes == ["of": "x"])
    #expect(a.buckets == "0 <= 0.5, 1 <= 1.0, 1")
    let b = try #require(items.last { $0.name == "b_bytes_total" })
    #expect(b.kind == "sum" && b.value == "7.0" && b.unit == "By")
    #expect(Set(items.filter { $0.name == "b_bytes_total" }.map(\.start)) == [b.start])
    // With the unit "1" Prometheus would call it `c_ratio`.
    #expect(items.contains { $0.name == "c" && $0.kind == "gauge" && $0.value == "1.5" && $0.unit.isEmpty })
  }

  @Test("what a receiver cannot take now is sent again, and what it refuses is not")
  func again() async throws {
    let receiver = try await HookReceiver { post, number in HTTPResponse(number == 1 ? 503 : 400) }
    let log = Logger(level: .error)
    let exporter = OTLPExporter(
      try settings(receiver.port, ["OTEL_METRICS_EXPORTER": "none"]), service: "films", log: log)
    await exporter.start { nil }
    span(try #require(exporter.tracer), "a")
    try await eventually("it is sent again") { receiver.posts.count == 2 }
    #expect(receiver.posts[0].body == receiver.posts[1].body)
    span(try #require(exporter.tracer), "b")
    try await eventually("the next is sent, and the refused one is not") { receiver.posts.count == 3 }
    #expect(receiver.posts[2].body != receiver.posts[1].body)
    await exporter.close()
    log.close()
    await receiver.stop()
  }

  @Test("a receiver that is not there, or never answers, holds up the end for seconds only") func absent() async throws
  {
    let receiver = try await HookReceiver { _, _ in
      try? await Task.sleep(for: .seconds(60))
      return HTTPResponse(200)
    }
    let log = Logger(level: .error)
    for port in [receiver.port, try LoopbackPort.free()] {
      let exporter = OTLPExporter(
        try settings(port, ["OTEL_EXPORTER_OTLP_TIMEOUT": "60000"]), service: "films", log: log)
      await exporter.start { MetricsSnapshot() }
      // A request is under way.
      span(try #require(exporter.tracer), "a")
      try await Task.sleep(for: .milliseconds(300))
      for _ in 0..<3000 { span(try #require(exporter.tracer), "a") }
      let begin = ContinuousClock.now
      await exporter.close()
      #expect(ContinuousClock.now - begin < .seconds(20))
    }
    log.close()
    await receiver.stop()
  }

  @Test("metrics that cannot be read hold up the end for seconds only", arguments: ["100", "60000"])
  func hangingMetrics(_ interval: String) async throws {
    let receiver = try await HookReceiver { _, _ in HTTPResponse(200) }
    let log = Logger(level: .error)
    let exporter = OTLPExporter(
      try settings(receiver.port, ["OTEL_METRIC_EXPORT_INTERVAL": interval]), service: "films", log: log)
    await exporter.start {
      try? await Task.sleep(for: .seconds(60))
      return MetricsSnapshot()
    }
    // In one case they are being read now, in the other only at the end.
    try await Task.sleep(for: .milliseconds(300))
    let begin = ContinuousClock.now
    await exporter.close()
    #expect(ContinuousClock.now - begin < .seconds(20))
    log.close()
    await receiver.stop()
  }

  @Test(
    "a receiver's wait is kept to, and at most a minute",
    arguments: [
      ("0", 0), ("60", 60), ("61", 60), ("3600", 60), ("99999999999999999999", 60), ("-1", nil), ("+5", nil), ("", nil),
      ("Fri, 31 Dec 1999 23:59:59 GMT", nil), (nil, nil),
    ] as [(String?, Int?)])
  func waits(_ text: String?, _ seconds: Int?) {
    #expect(OTLPExporter.wait(text) == seconds.map { .seconds($0) })
  }

  @Test("spans that end while others are sent wait until there is a batch of them") func batches() async throws {
    let recording = Lock<Tracer?>(nil)
    let receiver = try await HookReceiver { _, number in
      if number < 6, let tracer = recording.withLock({ $0 }) { span(tracer, "while it was sent") }
      return HTTPResponse(200)
    }
    let log = Logger(level: .error)
    let limits = [
      "OTEL_METRICS_EXPORTER": "none", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2", "OTEL_BSP_SCHEDULE_DELAY": "60000",
    ]
    let exporter = OTLPExporter(try settings(receiver.port, limits), service: "films", log: log)
    let tracer = try #require(exporter.tracer)
    recording.withLock { $0 = tracer }
    await exporter.start { nil }
    for name in ["a", "b"] { span(tracer, name) }
    // A full batch, and once more, because another might wait.
    try await eventually("a batch was sent") { receiver.posts.count >= 2 }
    try await Task.sleep(for: .milliseconds(500))
    #expect(receiver.posts.count == 2)
    span(tracer, "d")
    try await eventually("the next batch was sent") { receiver.posts.count >= 3 }
    await exporter.close()
    log.close()
    await receiver.stop()
    let names = try OTLPReference.items(of: receiver.posts).map(\.name)
    #expect(names.count == 8 && names.starts(with: ["a", "b"]))
  }

  @Test("each signal's receiver is verified by the certificate authorities that are named for it")
  func certificates() async throws {
    let receiver = try await HookReceiver { _, _ in HTTPResponse(200) }
    let certificates = try TestCertificates.shared.get()
    let traces = try TLSRelay(to: UInt16(receiver.port))
    let metrics = try TLSRelay(to: UInt16(receiver.port), as: .unknown)
    let log = Logger(level: .error)
    let exporter = OTLPExporter(
      try settings(
        receiver.port,
        [
          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": traces.url("/v1/traces"),
          "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": metrics.url("/v1/metrics"),
          "OTEL_EXPORTER_OTLP_CERTIFICATE": certificates.authority,
          "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": certificates.certificate(of: .unknown),
        ]), service: "films", log: log)
    await exporter.start { MetricsSnapshot() }
    span(try #require(exporter.tracer), "a")
    try await eventually("both have come") { Set(receiver.posts.map(\.path)) == ["/v1/traces", "/v1/metrics"] }
    await exporter.close()
    log.close()
    traces.close()
    metrics.close()
    await receiver.stop()
  }

  @Test("a partial success says what was not taken") func partial() {
    #expect(OTLPExporter.rejection(in: Array("{}".utf8)) == nil)
    #expect(OTLPExporter.rejection(in: []) == nil && OTLPExporter.rejection(in: Array("no JSON".utf8)) == nil)
    let body = #"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#
    #expect(OTLPExporter.rejection(in: Array(body.utf8)) == "it took all but 3: too old")
    #expect(OTLPExporter.rejection(in: Array(#"{"partialSuccess":{"rejectedDataPoints":0}}"#.utf8)) == nil)
  }
}
