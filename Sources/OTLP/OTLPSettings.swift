import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// Where spans and metrics go, read from the environment variables of OpenTelemetry's specification.
package struct OTLPSettings: Sendable {
  /// A place that takes one of the signals.
  package struct Endpoint: Hashable, Sendable {
    package var url: String
    package var headers: [Header]
    package var timeout: Duration
    package var caFile: String?
    /// The variable that names `caFile`.
    package var caFileVariable: String
  }

  package struct Header: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  /// Nil if no spans are sent.
  package var traces: Endpoint?
  /// Nil if no metrics are sent.
  package var metrics: Endpoint?
  package var sampler = Sampler.parentBased(root: .always)
  /// `service.name` is missing unless the environment says it.
  package var resource: [String: String] = [:]
  /// Spans that wait, and how many are sent at once.
  package var queue = 2048
  package var batch = 512
  /// The longest time that a span waits.
  package var delay = Duration.seconds(5)
  package var metricsInterval = Duration.seconds(60)

  /// Reads the variables; an empty one counts as not set. Nil if nothing is to be sent. Throws ``InvalidOTLPSetting``.
  package init?(_ environment: [String: String]) throws(InvalidOTLPSetting) {
    let settings = Variables(environment.filter { !$0.value.isEmpty })
    guard try !settings.flag("OTEL_SDK_DISABLED") else { return nil }
    traces = try settings.endpoint("TRACES")
    metrics = try settings.endpoint("METRICS")
    guard traces != nil || metrics != nil else { return nil }
    sampler = try settings.sampler()
    resource = Dictionary(try settings.pairs("OTEL_RESOURCE_ATTRIBUTES").map { ($0.name, $0.value) }) { $1 }
    if let name = settings["OTEL_SERVICE_NAME"] { resource["service.name"] = name }
    queue = try settings.number("OTEL_BSP_MAX_QUEUE_SIZE", in: 1...1_000_000) ?? queue
    batch = min(queue, try settings.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", in: 1...10_000) ?? batch)
    delay = try settings.milliseconds("OTEL_BSP_SCHEDULE_DELAY", or: delay)
    metricsInterval = try settings.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", or: metricsInterval)
  }
}

/// A variable of OpenTelemetry that cannot be used.
package struct InvalidOTLPSetting: Error, Hashable, Sendable, CustomStringConvertible {
  package var name: String
  package var expected: String
  /// What is there; nil if it may be a secret.
  package var value: String?

  package var description: String { "\(name) must be \(expected)" + (value.map { ", not \"\($0)\"" } ?? "") }
}

private struct Variables {
  let values: [String: String]

  init(_ values: [String: String]) { self.values = values }

  subscript(name: String) -> String? { values[name] }

  func flag(_ name: String) throws(InvalidOTLPSetting) -> Bool {
    guard let text = values[name]?.lowercased() else { return false }
    guard text == "true" || text == "false" else { throw invalid(name, "true or false") }
    return text == "true"
  }

  func number(_ name: String, in range: ClosedRange<Int>) throws(InvalidOTLPSetting) -> Int? {
    guard let text = values[name] else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw invalid(name, "a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func milliseconds(_ name: String, or standard: Duration) throws(InvalidOTLPSetting) -> Duration {
    try number(name, in: 1...86_400_000).map { .milliseconds($0) } ?? standard
  }

  /// `name=value,name=value`, with escapes such as `%20` in the values.
  func pairs(_ name: String) throws(InvalidOTLPSetting) -> [OTLPSettings.Header] {
    var pairs: [OTLPSettings.Header] = []
    for part in values[name]?.split(separator: ",") ?? [] {
      guard let pair = part.keyAndValue, case let key = pair.key.trimmed, !key.isEmpty,
        let value = PercentEncoding.decode(pair.value.trimmed.utf8)
      else {
        throw InvalidOTLPSetting(name: name, expected: "NAME=VALUE,…, with % escapes")
      }
      pairs.append(.init(name: key, value: String(decoding: value, as: UTF8.self)))
    }
    return pairs
  }

  /// Fields that can be sent: a wrong one would fail with every request.
  private func headers(_ name: String) throws(InvalidOTLPSetting) -> [OTLPSettings.Header] {
    let headers = try pairs(name)
    guard headers.allSatisfy({ HeaderField(name: $0.name, value: $0.value).isSendable }) else {
      throw InvalidOTLPSetting(name: name, expected: "NAME=VALUE,… that HTTP can send as header fields")
    }
    return headers
  }

  /// - Parameter signal: `TRACES` or `METRICS`.
  func endpoint(_ signal: String) throws(InvalidOTLPSetting) -> OTLPSettings.Endpoint? {
    let exporter = "OTEL_\(signal)_EXPORTER"
    switch values[exporter] {
    case nil, "otlp": break
    case "none": return nil
    default: throw invalid(exporter, "otlp or none")
    }
    let (own, shared) = ("OTEL_EXPORTER_OTLP_\(signal)_", "OTEL_EXPORTER_OTLP_")
    // That of a signal is used as it is; to the shared one comes the signal's path.
    let name = values[own + "ENDPOINT"] == nil ? shared + "ENDPOINT" : own + "ENDPOINT"
    guard var url = values[name] else { return nil }
    do throws(InvalidURL) {
      _ = try WebURL(url)
    } catch {
      throw InvalidOTLPSetting(name: name, expected: "an http:// or https:// URL: \(error)")
    }
    if name == shared + "ENDPOINT", url.utf8.contains(where: { "?#".utf8.contains($0) }) {
      throw InvalidOTLPSetting(
        name: name,
        expected: "a URL without query and fragment, because a path comes behind it; "
          + "\(shared)TRACES_ENDPOINT and \(shared)METRICS_ENDPOINT are whole URLs")
    }
    if name == shared + "ENDPOINT" { url += (url.hasSuffix("/") ? "" : "/") + "v1/\(signal.lowercased())" }
    func named(_ name: String) -> String { values[own + name] == nil ? shared + name : own + name }
    try checkProtocol(named("PROTOCOL"))
    let caFileVariable = named("CERTIFICATE")
    return try OTLPSettings.Endpoint(
      url: url, headers: headers(named("HEADERS")), timeout: milliseconds(named("TIMEOUT"), or: .seconds(10)),
      caFile: values[caFileVariable], caFileVariable: caFileVariable)
  }

  /// Receivers of OTLP over HTTP take both encodings at the same URL. Those of gRPC have another port.
  private func checkProtocol(_ name: String) throws(InvalidOTLPSetting) {
    guard let text = values[name] else { return }
    guard text == "http/json" || text == "http/protobuf" else {
      throw invalid(name, "http/json (gRPC is not spoken; receivers have another port for HTTP, usually 4318)")
    }
  }

  func sampler() throws(InvalidOTLPSetting) -> Sampler {
    let name = "OTEL_TRACES_SAMPLER"
    switch values[name] {
    case nil, "parentbased_always_on": return .parentBased(root: .always)
    case "parentbased_always_off": return .parentBased(root: .never)
    case "parentbased_traceidratio": return .parentBased(root: .ratio(try ratio()))
    case "always_on": return .always
    case "always_off": return .never
    case "traceidratio": return .ratio(try ratio())
    default:
      throw invalid(
        name, "always_on, always_off or traceidratio, each also behind parentbased_")
    }
  }

  private func ratio() throws(InvalidOTLPSetting) -> Double {
    guard let text = values["OTEL_TRACES_SAMPLER_ARG"] else { return 1 }
    guard let ratio = Double(text), (0...1).contains(ratio) else {
      throw invalid("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1")
    }
    return ratio
  }

  private func invalid(_ name: String, _ expected: String) -> InvalidOTLPSetting {
    InvalidOTLPSetting(name: name, expected: expected, value: values[name])
  }
}

extension String {
  fileprivate var trimmed: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
