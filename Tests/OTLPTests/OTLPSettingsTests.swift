import ReelhaulTelemetry
import Testing

@testable import OTLP

/// The environment variables of OpenTelemetry's specification.
@Suite struct OTLPSettingsTests {
  private static let endpoint = ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"]

  private func settings(_ more: [String: String]) throws -> OTLPSettings? {
    try OTLPSettings(Self.endpoint.merging(more) { $1 })
  }

  @Test("without an endpoint nothing is sent, nor where that is said") func nothing() throws {
    #expect(try OTLPSettings([:]) == nil)
    #expect(try OTLPSettings(["OTEL_SERVICE_NAME": "a", "OTEL_EXPORTER_OTLP_ENDPOINT": ""]) == nil)
    #expect(try settings(["OTEL_SDK_DISABLED": "true"]) == nil)
    #expect(try settings(["OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"]) == nil)
  }

  @Test("the shared endpoint gets each signal's path, and a signal's own is taken as it is") func endpoints() throws {
    let shared = try #require(try settings(["OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20a, x=1"]))
    #expect(shared.traces?.url == "http://127.0.0.1:4318/v1/traces")
    #expect(shared.metrics?.url == "http://127.0.0.1:4318/v1/metrics")
    #expect(shared.traces?.headers.map { "\($0.name): \($0.value)" } == ["authorization: Bearer a", "x: 1"])
    let own = try #require(
      try settings([
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://traces.example/in?key=k",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2500", "OTEL_METRICS_EXPORTER": "none",
      ]))
    #expect(own.traces?.url == "https://traces.example/in?key=k" && own.metrics == nil)
    #expect(own.traces?.headers.map(\.name) == ["a"] && own.traces?.timeout == .milliseconds(2500))
  }

  @Test("sampler, resource and limits") func others() throws {
    let made = try #require(
      try settings([
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=x,deployment.environment.name=a%2Cb,mark=\u{301}",
        "OTEL_SERVICE_NAME": "films",
        "OTEL_BSP_MAX_QUEUE_SIZE": "100", "OTEL_METRIC_EXPORT_INTERVAL": "1500",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
      ]))
    #expect(made.sampler == .parentBased(root: .ratio(0.25)))
    #expect(made.resource == ["service.name": "films", "deployment.environment.name": "a,b", "mark": "\u{301}"])
    #expect(made.queue == 100 && made.batch == 100 && made.metricsInterval == .milliseconds(1500))
  }

  @Test(
    "a wrong variable is named, and what it must be; a header's value is not repeated",
    arguments: [
      ("OTEL_SDK_DISABLED", "maybe"), ("OTEL_TRACES_EXPORTER", "zipkin"),
      ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "127.0.0.1:4318"),
      ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/x?key=k"),
      ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/#x"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=x%0d%0ab: c"),
      ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=c"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=%00"),
      ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20TOKEN%0A"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
      ("OTEL_EXPORTER_OTLP_HEADERS", "secret"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
      ("OTEL_TRACES_SAMPLER", "sometimes"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0"), ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz"),
    ])
  func wrong(_ name: String, _ value: String) throws {
    let error = try #require(throws: InvalidOTLPSetting.self) { try settings([name: value]) }
    #expect(error.name == name && error.description.hasPrefix("\(name) must be "))
    #expect(!name.hasSuffix("HEADERS") || !error.description.contains(value))
  }

  @Test("a ratio out of range is refused") func ratio() throws {
    let error = try #require(throws: InvalidOTLPSetting.self) {
      try settings(["OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1.5"])
    }
    #expect(error.name == "OTEL_TRACES_SAMPLER_ARG")
  }
}
