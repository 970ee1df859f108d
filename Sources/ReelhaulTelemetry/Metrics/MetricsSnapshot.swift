/// What a metric is called and what it means.
package struct MetricFamily: Sendable {
  package enum Kind: String, Sendable {
    case counter, gauge, histogram
  }

  package let name: String
  package let kind: Kind
  /// One sentence.
  package let help: String
  package let labels: [String]

  package init(_ name: String, _ kind: Kind, labels: [String] = [], help: String) {
    self.name = name
    self.kind = kind
    self.labels = labels
    self.help = help
  }
}

/// The values of metrics at one moment.
package struct MetricsSnapshot: Sendable {
  /// That of ``bytes``.
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  package struct Sample: Sendable {
    /// The values of the family's labels, in their order.
    package var labels: [String]
    package var value: Value
  }

  package enum Value: Sendable {
    case number(Double)
    /// How many there were in each bucket, of which the last has no bound, and their sum. Bounds are upper ones.
    case histogram(counts: [Int], bounds: [Double], sum: Double)
  }

  package private(set) var families: [(family: MetricFamily, samples: [Sample])] = []

  package init() {}

  /// Adds a metric with its values at this moment. The values of the labels are in the order of the family's labels.
  package mutating func add(_ family: MetricFamily, _ samples: [(labels: [String], value: Double)]) {
    add(family, samples.map { Sample(labels: $0.labels, value: .number($0.value)) })
  }

  package mutating func add(_ family: MetricFamily, _ samples: [Sample]) {
    families.append((family, samples))
  }

  /// Adds a metric without labels.
  package mutating func add(_ name: String, _ value: Double, kind: MetricFamily.Kind = .gauge, help: String) {
    add(MetricFamily(name, kind, help: help), [([], value)])
  }

  /// Prometheus' text format, 0.0.4.
  package var bytes: [UInt8] {
    var text = PrometheusText()
    for (family, samples) in families {
      text.begin(family)
      for sample in samples { text.add(sample, of: family) }
    }
    return text.bytes
  }
}

private struct PrometheusText {
  private(set) var bytes: [UInt8] = []

  mutating func begin(_ family: MetricFamily) {
    bytes += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n".utf8
  }

  mutating func add(_ sample: MetricsSnapshot.Sample, of family: MetricFamily) {
    switch sample.value {
    case .number(let value): line(family, labels: sample.labels, value: value)
    case .histogram(let counts, let bounds, let sum):
      var total = 0
      for (count, bound) in zip(counts, bounds.map { Self.number($0) } + ["+Inf"]) {
        total += count
        line(family, suffix: "_bucket", labels: sample.labels, bound: bound, value: Double(total))
      }
      line(family, suffix: "_sum", labels: sample.labels, value: sum)
      line(family, suffix: "_count", labels: sample.labels, value: Double(total))
    }
  }

  private mutating func line(
    _ family: MetricFamily, suffix: String = "", labels: [String], bound: String? = nil, value: Double
  ) {
    bytes += family.name.utf8
    bytes += suffix.utf8
    var pairs = Array(zip(family.labels, labels))
    if let bound { pairs.append(("le", bound)) }
    for (index, (name, value)) in pairs.enumerated() {
      bytes.append(UInt8(ascii: index == 0 ? "{" : ","))
      bytes += name.utf8
      bytes += "=\"".utf8
      append(escaped: value)
      bytes.append(UInt8(ascii: "\""))
    }
    if !pairs.isEmpty { bytes.append(UInt8(ascii: "}")) }
    bytes.append(UInt8(ascii: " "))
    bytes += Self.number(value).utf8
    bytes.append(UInt8(ascii: "\n"))
  }

  private mutating func append(escaped text: String) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\\"): bytes += #"\\"#.utf8
      case UInt8(ascii: "\""): bytes += #"\""#.utf8
      case UInt8(ascii: "\n"): bytes += #"\n"#.utf8
      default: bytes.append(byte)
      }
    }
  }

  private static func number(_ value: Double) -> String {
    if let integer = Int64(exactly: value) { return "\(integer)" }
    if value.isNaN { return "NaN" }
    return value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
  }
}
