import CommandLineKit
import ReelhaulCodec

/// The figures of one benchmark, each the median of several runs, and the targets that they are compared with.
struct BenchReport {
  struct Figure {
    var name: String
    var runs: [Double]
    var unit: String

    var median: Double {
      let sorted = runs.sorted()
      guard let middle = sorted.isEmpty ? nil : sorted.count / 2 else { return .nan }
      return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
  }

  struct Target {
    var name: String
    var value: Double
    var limit: Double
    var isAtMost: Bool

    var isMet: Bool { isAtMost ? value <= limit : value >= limit }
  }

  let benchmark: String
  var figures: [Figure] = []
  var targets: [Target] = []

  init(_ benchmark: String) {
    self.benchmark = benchmark
  }

  mutating func add(_ name: String, _ runs: [Double], _ unit: String) {
    figures.append(Figure(name: name, runs: runs, unit: unit))
  }

  func median(_ name: String) -> Double {
    figures.first { $0.name == name }?.median ?? .nan
  }

  mutating func atMost(_ limit: Double, _ name: String, _ value: Double) {
    targets.append(Target(name: name, value: value, limit: limit, isAtMost: true))
  }

  mutating func atLeast(_ limit: Double, _ name: String, _ value: Double) {
    targets.append(Target(name: name, value: value, limit: limit, isAtMost: false))
  }

  func print(_ bench: BenchContext) {
    guard !bench.wantsJSON else {
      bench.console.output.document { write(to: &$0) }
      return
    }
    var table = Table([
      .init(benchmark), .init("median", right: true), .init("min", right: true), .init("max", right: true), .init(""),
    ])
    for figure in figures {
      table.add([
        figure.name, Self.text(figure.median), Self.text(figure.runs.min() ?? .nan),
        Self.text(figure.runs.max() ?? .nan), figure.unit,
      ])
    }
    for target in targets {
      let bound = "\(target.isAtMost ? "at most" : "at least") \(Self.text(target.limit))"
      table.add([target.name, Self.text(target.value), "", "", "\(bound): \(target.isMet ? "met" : "MISSED")"])
    }
    bench.console.print(table)
    bench.console.output.line("")
  }

  private func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("benchmark", benchmark)
      json.name("figures")
      json.array { json in
        for figure in figures {
          json.object { json in
            json.member("name", figure.name)
            json.name("median")
            json.double(figure.median)
            json.member("unit", figure.unit)
            json.name("runs")
            json.array { json in
              for run in figure.runs { json.double(run) }
            }
          }
        }
      }
      json.name("targets")
      json.array { json in
        for target in targets {
          json.object { json in
            json.member("name", target.name)
            json.name("value")
            json.double(target.value)
            json.name(target.isAtMost ? "atMost" : "atLeast")
            json.double(target.limit)
            json.member("met", target.isMet)
          }
        }
      }
    }
  }

  /// Without decimals from 100 on, with three decimals below that; a dash if there is no figure.
  static func text(_ value: Double) -> String {
    guard value.isFinite else { return "–" }
    if value.magnitude >= 100 { return String(Int(value.rounded())) }
    let scaled = Int((value * 1000).rounded())
    let fraction = String(scaled.magnitude % 1000)
    let digits = String(repeating: "0", count: 3 - fraction.count) + fraction
    return "\(scaled < 0 ? "-" : "")\(scaled.magnitude / 1000).\(digits)"
  }
}
