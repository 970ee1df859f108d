/// How long to wait before connecting again: full jitter below a limit that doubles.
struct Backoff {
  var first: Duration = .milliseconds(50)
  var limit: Duration = .seconds(5)

  /// After the given number of failures in a row, counted from 1; `random` in 0..<1.
  func delay(failures: Int, random: Double) -> Duration {
    let doubled = first * (1 << min(max(failures - 1, 0), 20))
    return min(doubled, limit) * (0.1 + 0.9 * random)
  }
}
