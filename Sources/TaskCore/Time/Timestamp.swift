/// Microseconds since 1970-01-01T00:00:00Z, the resolution of PostgreSQL's `timestamptz`.
public struct Timestamp: Hashable, Comparable, Sendable {
  public var microseconds: Int64

  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  public static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }
}

extension Timestamp: LosslessStringConvertible {
  /// The RFC 3339 form in UTC with microseconds: `2026-11-21T14:17:26.000123Z`. The form can only express the years 1
  /// to 9999: an earlier or later time is written as the first or the last microsecond of them.
  public var description: String {
    String(unsafeUninitializedCapacity: Self.textLength, initializingUTF8With: write)
  }

  package static let textLength = 27

  /// Writes the form into `buffer`, and returns its length.
  package func write(to buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
    let (days, time) = min(max(self, Self.first), Self.last).microseconds.quotientAndFlooredRemainder(86_400_000_000)
    let date = CivilDate(daysSince1970: days)
    let (seconds, fraction) = time.quotientAndRemainder(dividingBy: 1_000_000)
    var next = 0
    func write(_ value: Int64, _ width: Int, then mark: Unicode.Scalar) {
      var rest = value
      for index in stride(from: next + width - 1, through: next, by: -1) {
        buffer[index] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      buffer[next + width] = UInt8(ascii: mark)
      next += width + 1
    }
    write(date.year, 4, then: "-")
    write(date.month, 2, then: "-")
    write(date.day, 2, then: "T")
    write(seconds / 3600, 2, then: ":")
    write(seconds / 60 % 60, 2, then: ":")
    write(seconds % 60, 2, then: ".")
    write(fraction, 6, then: "Z")
    return next
  }

  /// Reads an RFC 3339 time with `Z` or an offset. In UTC, the year must be within 1…9999. Digits of the fraction after
  /// the sixth are ignored.
  ///
  /// A second 60 is a leap second. RFC 3339 (5.6, 5.7) allows it only at the end of a month in UTC; it is refused
  /// anywhere else. Unix time has no leap seconds, so it is read as the next second, the first of the next month.
  public init(rfc3339 text: String) throws(InvalidTimestamp) {
    var scanner = DigitScanner(text)
    guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
      let day = scanner.number(2), scanner.take("T") || scanner.take("t") || scanner.take(" "),
      let hour = scanner.number(2), scanner.take(":"), let minute = scanner.number(2), scanner.take(":"),
      let second = scanner.number(2), let date = CivilDate(year: year, month: month, day: day),
      hour < 24, minute < 60, second <= 60
    else { throw .form }
    var fraction: Int64 = 0
    if scanner.take(".") {
      guard let microseconds = scanner.millionths() else { throw .form }
      fraction = microseconds
    }
    guard let offset = scanner.offset(), scanner.isAtEnd else { throw .form }
    let seconds = (date.daysSince1970 * 24 + hour) * 3600 + minute * 60 + second - offset
    guard second < 60 || Self.beginsMonth(seconds) else { throw .leapSecond }
    self.init(microseconds: seconds * 1_000_000 + fraction)
    guard (Self.first...Self.last).contains(self) else { throw .form }
  }

  /// The same, without the reason.
  public init?(_ text: String) {
    guard let time = try? Timestamp(rfc3339: text) else { return nil }
    self = time
  }

  private static func beginsMonth(_ seconds: Int64) -> Bool {
    let (days, time) = seconds.quotientAndFlooredRemainder(86_400)
    return time == 0 && CivilDate(daysSince1970: days).day == 1
  }

  /// 0001-01-01T00:00:00Z
  package static let first = Timestamp(microseconds: -62_135_596_800_000_000)
  /// 9999-12-31T23:59:59.999999Z
  package static let last = Timestamp(microseconds: 253_402_300_799_999_999)
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

extension Int64 {
  /// Quotient and a remainder that is never negative.
  fileprivate func quotientAndFlooredRemainder(_ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

/// Why a text is not a ``Timestamp``.
public enum InvalidTimestamp: Error, Hashable, Sendable {
  /// The text is not a time of RFC 3339, or the year is not within 1…9999.
  case form
  /// A second 60 that cannot be a leap second.
  case leapSecond
}

extension InvalidTimestamp: CustomStringConvertible {
  public var description: String {
    switch self {
    case .form: "expected a time of RFC 3339, such as 2026-11-21T14:17:26Z"
    case .leapSecond: "second 60 exists only at the end of a month in UTC"
    }
  }
}
