/// A limit of bytes per second that many transfers share as equals, however many connections each has: who must wait
/// stands in line, gets one portion when its turn has come, and goes to the end of the line for the next.
/// Pure: it is handed the time, in nanoseconds.
struct SharedBucket {
  /// The bytes of one turn; the larger, the fewer turns there are to take.
  let portion: Int
  private var bucket: TokenBucket
  private var line: [Int] = []

  /// - Parameter rate: bytes per second, at least 1.
  init(rate: Int64, now: Int64) {
    portion = Int(min(max(rate / 64, 16 << 10), 256 << 10))
    bucket = TokenBucket(rate: rate, now: now)
  }

  /// True: `transfer` has a portion, now. False: it stands in line, where it must not stand already.
  mutating func take(_ transfer: Int, now: Int64) -> Bool {
    guard line.isEmpty, bucket.wait(now: now) == 0 else {
      line.append(transfer)
      return false
    }
    bucket.take(portion, now: now)
    return true
  }

  /// Gives a portion to each transfer whose turn has come. `wait`: nanoseconds until the next turn, or `nil` where nobody
  /// stands in line.
  mutating func serve(now: Int64) -> (served: [Int], wait: Int64?) {
    var count = 0
    while count < line.count, bucket.wait(now: now) == 0 {
      bucket.take(portion, now: now)
      count += 1
    }
    defer { line.removeFirst(count) }
    return (Array(line[..<count]), count < line.count ? bucket.wait(now: now) : nil)
  }

  /// `transfer` is over: out of the line, and what it has not used is everybody's again.
  mutating func leave(_ transfer: Int, returning bytes: Int, now: Int64) {
    line.removeAll { $0 == transfer }
    bucket.take(-bytes, now: now)
  }
}
