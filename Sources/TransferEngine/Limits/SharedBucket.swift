/// A limit of bytes per second that many transfers share equally, however many connections each has. A transfer that
/// must wait stands in a line, gets one portion when its turn comes, and goes to the end of the line for the next.
/// Pure: the time is a parameter, in nanoseconds.
struct SharedBucket {
  /// The bytes of one turn. The larger it is, the fewer turns are needed.
  let portion: Int
  private var bucket: TokenBucket
  private var line: [Int] = []

  /// - Parameter rate: bytes per second, at least 1.
  init(rate: Int64, now: Int64) {
    portion = Int(min(max(rate / 64, 16 << 10), 256 << 10))
    bucket = TokenBucket(rate: rate, now: now)
  }

  /// Returns true if `transfer` gets a portion now. Otherwise it stands in line, where it must not stand already.
  mutating func take(_ transfer: Int, now: Int64) -> Bool {
    guard line.isEmpty, bucket.wait(now: now) == 0 else {
      line.append(transfer)
      return false
    }
    bucket.take(portion, now: now)
    return true
  }

  /// Gives a portion to each transfer whose turn has come. `wait`: nanoseconds until the next turn, or nil if no
  /// transfer waits.
  mutating func serve(now: Int64) -> (served: [Int], wait: Int64?) {
    var count = 0
    while count < line.count, bucket.wait(now: now) == 0 {
      bucket.take(portion, now: now)
      count += 1
    }
    defer { line.removeFirst(count) }
    return (Array(line[..<count]), count < line.count ? bucket.wait(now: now) : nil)
  }

  /// Removes `transfer` from the line, and returns its unused bytes to the bucket.
  mutating func leave(_ transfer: Int, returning bytes: Int, now: Int64) {
    line.removeAll { $0 == transfer }
    bucket.take(-bytes, now: now)
  }
}
