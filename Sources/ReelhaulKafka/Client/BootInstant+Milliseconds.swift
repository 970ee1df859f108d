import ReelhaulSystem

extension BootInstant {
  /// Milliseconds until then, rounded up, never negative: the form of librdkafka's timeouts.
  var millisecondsLeft: Int32 { Int32(clamping: (remaining.nanoseconds + 999_999) / 1_000_000) }
}
