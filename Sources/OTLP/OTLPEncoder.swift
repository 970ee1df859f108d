import ReelhaulCodec
import ReelhaulTelemetry
import TaskCore

/// Encodes spans and metrics as OTLP's JSON: `ExportTraceServiceRequest` and `ExportMetricsServiceRequest` of the
/// OpenTelemetry protocol, 1.x. Its 64-bit numbers are strings, and its ids are hexadecimal.
package struct OTLPEncoder: Sendable {
  private static let scope = "reelhaul"

  let resource: [(String, String)]

  /// - Parameter resource: says which program tells it, by names such as `service.name`.
  package init(resource: [String: String]) {
    self.resource = resource.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: Spans

  package func encode(_ spans: [Span]) -> [UInt8] {
    JSONWriter.write(capacity: spans.count * 600) { json in
      write("resourceSpans", "scopeSpans", to: &json) { json in
        json.name("spans")
        json.array { json in
          for span in spans { Self.write(span, to: &json) }
        }
      }
    }
  }

  private static func write(_ span: Span, to json: inout JSONWriter) {
    json.object { json in
      json.member("traceId", span.context.trace)
      json.member("spanId", span.context.span)
      json.member("traceState", span.context.state)
      json.member("parentSpanId", span.parent.map(TraceContext.digits))
      json.member("name", span.name)
      json.member("kind", span.kind.rawValue)
      json.member("startTimeUnixNano", nanoseconds(span.start))
      json.member("endTimeUnixNano", nanoseconds(max(span.start, span.end)))
      json.name("attributes")
      write(span.attributes, to: &json)
      json.name("status")
      json.object { json in
        guard let error = span.error else { return }
        json.member("code", Self.errorStatus)
        json.member("message", error)
      }
    }
  }

  private static let errorStatus = 2

  // MARK: Metrics

  /// - Parameter start: when counting began.
  package func encode(_ metrics: MetricsSnapshot, start: Timestamp, now: Timestamp) -> [UInt8] {
    let times = (start: Self.nanoseconds(start), now: Self.nanoseconds(now))
    return JSONWriter.write(capacity: 64 << 10) { json in
      write("resourceMetrics", "scopeMetrics", to: &json) { json in
        json.name("metrics")
        json.array { json in
          for (family, samples) in metrics.families where !samples.isEmpty {
            Self.write(family, samples, times, to: &json)
          }
        }
      }
    }
  }

  private static func write(
    _ family: MetricFamily, _ samples: [MetricsSnapshot.Sample], _ times: (start: String, now: String),
    to json: inout JSONWriter
  ) {
    json.object { json in
      json.member("name", family.name)
      json.member("description", family.help)
      json.member("unit", unit(of: family.name))
      switch family.kind {
      case .gauge: json.name("gauge")
      case .counter: json.name("sum")
      case .histogram: json.name("histogram")
      }
      json.object { json in
        if family.kind != .gauge { json.member("aggregationTemporality", cumulative) }
        if family.kind == .counter { json.member("isMonotonic", true) }
        json.name("dataPoints")
        json.array { json in
          for sample in samples {
            json.object { json in
              json.name("attributes")
              write(zip(family.labels, sample.labels).map { ($0, .text($1)) }, to: &json)
              if family.kind != .gauge { json.member("startTimeUnixNano", times.start) }
              json.member("timeUnixNano", times.now)
              write(sample.value, to: &json)
            }
          }
        }
      }
    }
  }

  /// Since the start, not since the last time.
  private static let cumulative = 2

  private static func write(_ value: MetricsSnapshot.Value, to json: inout JSONWriter) {
    switch value {
    case .number(let number):
      json.name("asDouble")
      json.double(number)
    case .histogram(let counts, let bounds, let sum):
      json.member("count", "\(counts.reduce(0, +))")
      json.name("sum")
      json.double(sum)
      json.member("bucketCounts", counts.map { "\($0)" })
      json.name("explicitBounds")
      json.array { json in
        for bound in bounds { json.double(bound) }
      }
    }
  }

  /// The unit that a metric's name says, in the spelling of UCUM.
  private static func unit(of name: String) -> String {
    let name = name.hasSuffix("_total") ? name.dropLast("_total".count) : name[...]
    // Not "1", which means a ratio: Prometheus would call a gauge `…_ratio`.
    return if name.hasSuffix("_seconds") { "s" } else if name.hasSuffix("_bytes") { "By" } else { "" }
  }

  // MARK: Parts

  private func write(
    _ resources: StaticString, _ scopes: StaticString, to json: inout JSONWriter,
    _ members: (inout JSONWriter) -> Void
  ) {
    json.object { json in
      json.name(resources)
      json.array { json in
        json.object { json in
          json.name("resource")
          json.object { json in
            json.name("attributes")
            Self.write(resource.map { ($0.0, .text($0.1)) }, to: &json)
          }
          json.name(scopes)
          json.array { json in
            json.object { json in
              json.name("scope")
              json.object { json in
                json.member("name", Self.scope)
                json.member("version", Build.version)
              }
              members(&json)
            }
          }
        }
      }
    }
  }

  private static func write(_ attributes: [(String, LogValue)], to json: inout JSONWriter) {
    json.array { json in
      for (key, value) in attributes {
        json.object { json in
          json.member("key", key)
          json.name("value")
          json.object { json in
            switch value {
            case .text(let text): json.member("stringValue", text)
            case .integer(let integer): json.member("intValue", "\(integer)")
            case .bool(let bool): json.member("boolValue", bool)
            case .double(let double):
              json.name("doubleValue")
              json.double(double)
            }
          }
        }
      }
    }
  }

  private static func nanoseconds(_ time: Timestamp) -> String { "\(time.microseconds)000" }
}
