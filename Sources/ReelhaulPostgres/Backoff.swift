/// How long to wait before the next attempt to connect: a random time (full jitter) below a limit that doubles.
struct Backoff {
  var first: Duration = .milliseconds(50)
  var limit: Duration = .seconds(5)

  /// `failures` is the number of failures in a row, from 1; `random` is in 0..<1.
  func delay(failures: Int, random: Double) -> Duration {
    let doubled = first * (1 << min(max(failures - 1, 0), 20))
    return min(doubled, limit) * (0.1 + 0.9 * random)
  }
}
