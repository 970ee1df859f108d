/// How many connections one download uses: more while that makes it faster, fewer where the server refuses them.
///
/// Pure: one sample of the download's throughput goes in about every second, the number of connections comes out. It
/// doubles while each step brings a tenth more throughput, steps back when one does not, and tries one more now and then.
public struct ConnectionGovernor: Sendable {
  /// A step must bring this many percent.
  public static let worthwhilePercent: Int64 = 10
  /// Samples between a step that did not pay and the next try.
  public static let patience = 10

  /// How many connections there should be now.
  public private(set) var connections: Int
  private var ceiling: Int
  /// The throughput and the number of connections before the last step up.
  private var before: (throughput: Int64, connections: Int)?
  private var doubles = true
  private var rest = 0

  /// Starts with `start` connections and never uses more than `maximum`.
  public init(maximum: Int, start: Int = 1) {
    ceiling = max(1, maximum)
    connections = min(max(1, start), ceiling)
  }

  /// The download moved `throughput` bytes per second since the last sample, with as many connections as were asked for.
  public mutating func observe(throughput: Int64) {
    if rest > 0 {
      rest -= 1
      return
    }
    if let before, !Self.pays(throughput, over: before.throughput) {
      connections = min(before.connections, ceiling)
      self.before = nil
      doubles = false
      rest = Self.patience
      return
    }
    guard connections < ceiling else {
      before = nil
      return
    }
    before = (throughput, connections)
    connections = min(doubles ? connections * 2 : connections + 1, ceiling)
  }

  /// The server refused one of the connections (429, 503, reset at once): one fewer, and never as many again.
  public mutating func refused() {
    ceiling = max(1, connections - 1)
    connections = ceiling
    before = nil
    doubles = false
    rest = Self.patience
  }

  private static func pays(_ throughput: Int64, over before: Int64) -> Bool {
    Double(throughput) * 100 >= Double(before) * Double(100 + worthwhilePercent)
  }
}
