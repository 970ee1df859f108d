/// Decides how many connections one download uses: more while that makes it faster, fewer if the server refuses them.
///
/// Pure: a sample of the download's throughput goes in about every second, and the number of connections comes out. The
/// number doubles as long as each step brings a tenth more throughput. If a step does not, the number goes back, and
/// from time to time one more connection is tried.
public struct ConnectionGovernor: Sendable {
  /// How much more throughput a step must bring, in percent.
  public static let worthwhilePercent: Int64 = 10
  /// How many samples pass between a step that brought too little and the next try.
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

  /// Reports that the download moved `throughput` bytes per second since the last sample, with ``connections``
  /// connections.
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

  /// Reports that the server refused a connection (429, 503, or an immediate reset). The download then uses one
  /// connection fewer, and never more than that again.
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
