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

/// Metrics in Prometheus' text format, 0.0.4.
package struct MetricsText: Sendable {
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Adds a metric with its values at this moment. The values of the labels are in the order of the family's labels.
  package mutating func add(_ family: MetricFamily, _ samples: [(labels: [String], value: Double)]) {
    begin(family)
    for sample in samples { self.sample(family, labels: sample.labels, value: sample.value) }
  }

  /// Adds a metric without labels.
  package mutating func add(_ name: String, _ value: Double, kind: MetricFamily.Kind = .gauge, help: String) {
    add(MetricFamily(name, kind, help: help), [([], value)])
  }

  mutating func begin(_ family: MetricFamily) {
    bytes += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n".utf8
  }

  mutating func sample(
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

  static func number(_ value: Double) -> String {
    if let integer = Int64(exactly: value) { return "\(integer)" }
    if value.isNaN { return "NaN" }
    return value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
  }
}
