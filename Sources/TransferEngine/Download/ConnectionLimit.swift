/// How many connections a download uses: one more while that makes it faster, one less when the server minds. Pure.
struct ConnectionLimit: Hashable {
  private(set) var current = 2
  private var ceiling: Int
  /// Bytes per second of the whole download when the last connection was added.
  private var rateAtGrowth: Int64 = 0

  init(ceiling: Int) {
    self.ceiling = max(1, ceiling)
    current = min(2, self.ceiling)
  }

  /// A chunk is there while `running` requests bring `rate` bytes per second together.
  mutating func chunkArrived(rate: Int64, running: Int) {
    guard running >= current, current < ceiling, rate > rateAtGrowth + rateAtGrowth / 10 else { return }
    rateAtGrowth = rate
    current += 1
  }

  /// The server refused or dropped a connection while `others` went on; it shall not see so many again.
  mutating func connectionFailed(others: Int) {
    ceiling = max(1, min(ceiling, others))
    current = min(current, ceiling)
  }
}
