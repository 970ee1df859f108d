extension Timestamp: LosslessStringConvertible {
  /// The RFC 3339 form in UTC with microseconds: `2026-11-21T14:17:26.000123Z`.
  public var description: String {
    let (days, time) = microseconds.quotientAndFlooredRemainder(86_400_000_000)
    let date = CivilDate(daysSince1970: days)
    let (seconds, fraction) = time.quotientAndRemainder(dividingBy: 1_000_000)
    return digits(date.year, 4) + "-" + digits(date.month, 2) + "-" + digits(date.day, 2)
      + "T" + digits(seconds / 3600, 2) + ":" + digits(seconds / 60 % 60, 2) + ":" + digits(seconds % 60, 2)
      + "." + digits(fraction, 6) + "Z"
  }

  /// Reads an RFC 3339 time with `Z` or an offset, years 1 to 9999; digits after the sixth of the fraction are dropped.
  public init?(_ text: String) {
    var scanner = DigitScanner(text)
    guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
      let day = scanner.number(2), scanner.take("T") || scanner.take("t") || scanner.take(" "),
      let hour = scanner.number(2), scanner.take(":"), let minute = scanner.number(2), scanner.take(":"),
      let second = scanner.number(2), let date = CivilDate(year: year, month: month, day: day),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    var fraction: Int64 = 0
    if scanner.take(".") {
      guard let microseconds = scanner.millionths() else { return nil }
      fraction = microseconds
    }
    guard let offset = scanner.offset(), scanner.isAtEnd else { return nil }
    let seconds = (date.daysSince1970 * 24 + hour) * 3600 + minute * 60 + second - offset
    self.init(microseconds: seconds * 1_000_000 + fraction)
  }
}

extension DigitScanner {
  /// Seconds east of UTC: `Z`, `+02:00`, `-00:30`.
  fileprivate mutating func offset() -> Int64? {
    if take("Z") || take("z") { return 0 }
    let sign: Int64
    if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
    guard let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }
}

private func digits(_ value: Int64, _ width: Int) -> String {
  let text = String(value)
  return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
}

extension Int64 {
  /// Quotient and a remainder that is never negative.
  fileprivate func quotientAndFlooredRemainder(_ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
