import ReelhaulSystem
import Synchronization

/// A label and all values that it may have. A value is named by its index, so that counting makes no string.
package struct MetricLabel: Sendable {
  package let name: String
  fileprivate let count: Int
  fileprivate let values: @Sendable () -> [String]

  package init(_ name: String, _ values: [String]) {
    self.name = name
    count = values.count
    self.values = { values }
  }

  /// The names that `table` will have, and `other`.
  package init(_ name: String, _ table: MetricNames) {
    self.name = name
    count = table.limit + 1
    values = { table.all }
  }

  /// The cases of an enum from 0 on, in the spelling of metrics: `handedBack` is `handed_back`.
  package init<Value: CaseIterable & RawRepresentable>(_ name: String, _ type: Value.Type) where Value.RawValue == Int {
    self.init(name, Value.allCases.map { Self.spelled("\($0)") })
  }

  package static func spelled(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : String($1) }
  }
}

/// The values of a label that are not known beforehand: the first names that come, up to a limit. All further ones count
/// as `other`.
package final class MetricNames: Sendable {
  package static let other = "other"

  fileprivate let limit: Int
  private let state = Lock<(indices: [String: Int], names: [String])>(([:], []))

  package init(limit: Int) {
    self.limit = limit
  }

  package func index(of name: String) -> Int {
    state.withLock { state in
      if let index = state.indices[name] { return index }
      guard state.names.count < limit, name != Self.other else { return limit }
      state.indices[name] = state.names.count
      state.names.append(name)
      return state.names.count - 1
    }
  }

  /// With empty names for those that have not come.
  fileprivate var all: [String] {
    let names = state.withLock { $0.names }
    return names + Array(repeating: "", count: limit - names.count) + [Self.other]
  }
}

/// A metric that is counted where things happen, and written when it is asked for.
package protocol Metric: Sendable {
  func write(to text: inout MetricsSnapshot)
}

extension MetricsSnapshot {
  package mutating func add(_ metrics: any Metric...) {
    for metric in metrics { metric.write(to: &self) }
  }
}

/// One number for each combination of the values of up to two labels. Any thread may add to it, at the cost of one
/// atomic addition.
package final class CountedMetric: Metric {
  private let family: MetricFamily
  private let space: LabelSpace
  private let cells: AtomicCells

  private init(_ name: String, _ kind: MetricFamily.Kind, _ labels: [MetricLabel], _ help: String) {
    family = MetricFamily(name, kind, labels: labels.map(\.name), help: help)
    space = LabelSpace(labels)
    cells = AtomicCells(space.count)
  }

  package static func counter(_ name: String, _ labels: MetricLabel..., help: String) -> CountedMetric {
    CountedMetric(name, .counter, labels, help)
  }

  package static func gauge(_ name: String, _ labels: MetricLabel..., help: String) -> CountedMetric {
    CountedMetric(name, .gauge, labels, help)
  }

  /// `first` and `second` are indices of label values; 0 where the metric has no such label.
  package func add(_ count: Int = 1, _ first: Int = 0, _ second: Int = 0) {
    cells.add(count, at: space.index(first, second))
  }

  package func set(_ value: Int, _ first: Int = 0) {
    cells.set(value, at: space.index(first, 0))
  }

  package func write(to text: inout MetricsSnapshot) {
    text.add(family, space.all.enumerated().map { (labels: $1, value: Double(cells[$0])) })
  }
}

/// Counts durations in fixed buckets, for each combination of the values of up to two labels. A combination is written
/// from its first duration on. Any thread may add to it.
package final class DurationHistogram: Metric {
  /// Upper bounds of the buckets, in seconds.
  package enum Buckets {
    /// For calls.
    package static let calls = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    /// For what may take days.
    package static let tasks = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 14_400, 86_400]
  }

  private let family: MetricFamily
  private let space: LabelSpace
  private let bounds: [Int64]
  /// The same in seconds.
  private let buckets: [Double]
  /// For each combination its buckets, of which the last has no bound, and the sum in nanoseconds as a `Double`: after a
  /// long backlog, the sum of all waits is more than an integer holds.
  private let cells: AtomicCells

  package init(_ name: String, _ labels: MetricLabel..., buckets: [Double] = Buckets.calls, help: String) {
    family = MetricFamily(name, .histogram, labels: labels.map(\.name), help: help)
    space = LabelSpace(labels)
    bounds = buckets.map { Int64($0 * 1e9) }
    self.buckets = buckets
    cells = AtomicCells(space.count * (buckets.count + 2))
  }

  package func observe(nanoseconds: Int64, _ first: Int = 0, _ second: Int = 0) {
    let start = space.index(first, second) * (bounds.count + 2)
    let time = max(0, nanoseconds)
    cells.add(1, at: start + (bounds.firstIndex { time <= $0 } ?? bounds.count))
    cells.add(Double(time), at: start + bounds.count + 1)
  }

  package func write(to text: inout MetricsSnapshot) {
    // Names come before what is counted for them, and so they are read last.
    let counted = (0..<space.count).map { index in
      let start = index * (bounds.count + 2)
      return (counts: (0...bounds.count).map { cells[start + $0] }, sum: cells.double(at: start + bounds.count + 1))
    }
    text.add(
      family,
      zip(space.all, counted).compactMap { labels, cell -> MetricsSnapshot.Sample? in
        guard labels.isEmpty || cell.counts.contains(where: { $0 > 0 }) else { return nil }
        return .init(
          labels: labels, value: .histogram(counts: cell.counts, bounds: buckets, sum: cell.sum / 1e9))
      })
  }
}

/// All combinations of the values of up to two labels, as indices.
private struct LabelSpace {
  private let labels: [MetricLabel]
  let count: Int
  private let inner: Int

  init(_ labels: [MetricLabel]) {
    precondition(labels.count <= 2, "a metric has at most two labels")
    self.labels = labels
    count = labels.reduce(1) { $0 * $1.count }
    inner = labels.count == 2 ? labels[1].count : 1
  }

  /// The values of each combination.
  var all: [[String]] {
    labels.reduce([[]]) { sets, label in
      let values = label.values()
      return sets.flatMap { set in values.map { set + [$0] } }
    }
  }

  func index(_ first: Int, _ second: Int) -> Int { first * inner + second }
}

// @unchecked: every access is atomic.
private final class AtomicCells: @unchecked Sendable {
  private let cells: UnsafeMutablePointer<Atomic<Int>>
  private let count: Int

  init(_ count: Int) {
    self.count = count
    cells = .allocate(capacity: count)
    for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
  }

  deinit {
    cells.deinitialize(count: count)
    cells.deallocate()
  }

  func add(_ value: Int, at index: Int) {
    precondition(index < count, "no such label value")
    cells[index].add(value, ordering: .relaxed)
  }

  /// For a cell that holds a `Double`.
  func add(_ value: Double, at index: Int) {
    precondition(index < count, "no such label value")
    var bits = cells[index].load(ordering: .relaxed)
    var isAdded = false
    while !isAdded {
      let sum = Self.double(bits) + value
      (isAdded, bits) = cells[index].weakCompareExchange(
        expected: bits, desired: Int(bitPattern: UInt(sum.bitPattern)), ordering: .relaxed)
    }
  }

  func double(at index: Int) -> Double { Self.double(self[index]) }

  private static func double(_ bits: Int) -> Double { Double(bitPattern: UInt64(UInt(bitPattern: bits))) }

  func set(_ value: Int, at index: Int) {
    precondition(index < count, "no such label value")
    cells[index].store(value, ordering: .relaxed)
  }

  subscript(index: Int) -> Int { cells[index].load(ordering: .relaxed) }
}
