/// The text format 0.0.4 of Prometheus, read strictly: what the format allows and our exporters do not need is refused.
package struct PrometheusText: Sendable {
  package struct Problem: Error, CustomStringConvertible {
    package let description: String
  }

  package struct Series: Sendable {
    package var labels: [String: String]
    package var value: Double
  }

  package struct Family: Sendable {
    package var kind: String
    package var help: String
    /// Of a histogram, one for each combination of labels, with the number of its observations.
    package var series: [Series] = []
  }

  package private(set) var families: [String: Family] = [:]

  /// Throws ``Problem``.
  package init(_ text: String) throws {
    guard text.hasSuffix("\n"), !text.contains("\r") else { throw Problem(description: "lines end with \\n") }
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()[...]
    while let line = lines.popFirst() {
      guard let head = line.wholeMatch(of: /# HELP ([a-z][a-z0-9_]*) ?(.*)/),
        let type = lines.popFirst()?.wholeMatch(of: /# TYPE ([a-z][a-z0-9_]*) (counter|gauge|histogram)/),
        head.1 == type.1, families[String(head.1)] == nil
      else { throw Problem(description: "a metric begins once, with HELP and TYPE: \(line)") }
      let name = String(head.1)
      var family = Family(kind: String(type.2), help: String(head.2))
      guard (family.kind == "counter") == name.hasSuffix("_total"), !family.help.isEmpty else {
        throw Problem(description: "\(name): counters end with _total, others do not, and all have help")
      }
      var samples: [(suffix: String, labels: [String: String], value: Double)] = []
      while let line = lines.first, !line.hasPrefix("#") {
        samples.append(try Self.sample(String(line), of: name))
        lines.removeFirst()
      }
      family.series =
        try family.kind == "histogram"
        ? Self.histogram(samples, name)
        : samples.map { sample in
          guard sample.suffix.isEmpty, family.kind == "gauge" || sample.value >= 0 else {
            throw Problem(description: "\(name)\(sample.suffix) is not of \(name)")
          }
          return Series(labels: sample.labels, value: sample.value)
        }
      guard Set(family.series.map(\.labels)).count == family.series.count else {
        throw Problem(description: "\(name) has a series twice")
      }
      families[name] = family
    }
  }

  /// The value of one series, or the number of observations; 0 where there is none.
  package func value(_ name: String, _ labels: [String: String] = [:]) -> Double {
    families[name]?.series.first { $0.labels == labels }?.value ?? 0
  }

  private static func sample(_ line: String, of name: String) throws -> (String, [String: String], Double) {
    let shape = /([a-z][a-z0-9_]*?)(_bucket|_sum|_count)?(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? ([^ ]+)/
    guard let match = line.wholeMatch(of: shape), line.hasPrefix(name), let value = Double(match.4) else {
      throw Problem(description: "this is no sample of \(name): \(line)")
    }
    let isExact = match.1 == name
    let suffix = isExact ? String(match.2 ?? "") : ""
    guard isExact || "\(match.1)\(match.2 ?? "")" == name else {
      throw Problem(description: "this is no sample of \(name): \(line)")
    }
    var labels: [String: String] = [:]
    for pair in (match.3 ?? "").matches(of: /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"/) {
      guard labels.updateValue(String(pair.2), forKey: String(pair.1)) == nil else {
        throw Problem(description: "a label is there twice: \(line)")
      }
    }
    guard match.3?.hasSuffix(",") != true else { throw Problem(description: "a comma without a label: \(line)") }
    return (suffix, labels, value)
  }

  private static func histogram(
    _ samples: [(suffix: String, labels: [String: String], value: Double)], _ name: String
  ) throws -> [Series] {
    var series: [Series] = []
    var rest = samples[...]
    while let first = rest.first {
      var labels = first.labels
      labels["le"] = nil
      let own = rest.prefix { sample in
        var its = sample.labels
        its["le"] = nil
        return its == labels
      }
      rest = rest.dropFirst(own.count)
      let buckets = own.dropLast(2)
      let bounds = try buckets.map { bucket in
        guard bucket.suffix == "_bucket", let text = bucket.labels["le"], let bound = Double(text) else {
          throw Problem(description: "\(name): a bucket has no bound")
        }
        return bound
      }
      let counts = buckets.map(\.value)
      guard own.suffix(2).map(\.suffix) == ["_sum", "_count"], bounds.last == .infinity,
        zip(bounds, bounds.dropFirst()).allSatisfy({ $0 < $1 }),
        zip(counts, counts.dropFirst()).allSatisfy({ $0 <= $1 }), counts.last == own.last?.value
      else { throw Problem(description: "\(name): its buckets do not add up") }
      series.append(Series(labels: labels, value: own.last?.value ?? 0))
    }
    return series
  }
}
