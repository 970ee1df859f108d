/// The dates of HTTP headers (RFC 9110, IMF-fixdate): `Sat, 21 Nov 2026 14:17:26 GMT`.
enum HTTPDate {
  private static let months: [StaticString] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
  private static let weekdays: [StaticString] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

  /// `nil` for the two obsolete forms, too.
  static func parse(_ text: String) -> Timestamp? {
    var scanner = DigitScanner(text)
    guard weekdays.contains(where: { scanner.take($0) }), scanner.take(", "), let day = scanner.number(2),
      scanner.take(" "), let month = months.firstIndex(where: { scanner.take($0) }), scanner.take(" "),
      let year = scanner.number(4), scanner.take(" "), let hour = scanner.number(2), scanner.take(":"),
      let minute = scanner.number(2), scanner.take(":"), let second = scanner.number(2), scanner.take(" GMT"),
      scanner.isAtEnd, hour < 24, minute < 60, second <= 60,
      let date = CivilDate(year: year, month: Int64(month) + 1, day: day)
    else { return nil }
    return Timestamp(microseconds: ((date.daysSince1970 * 24 + hour) * 3600 + minute * 60 + second) * 1_000_000)
  }
}
