/// A time as `2026-01-31T23:59:59.123Z`.
package struct LogTime: CustomStringConvertible, Sendable {
  package let microseconds: Int64

  package init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  package var description: String {
    let milliseconds = (microseconds >= 0 ? microseconds : microseconds - 999) / 1000
    var (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    if rest < 0 {
      days -= 1
      rest += 86_400_000
    }
    // Days to a date of the proleptic Gregorian calendar: years that start in March put the leap day last.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    let time = [rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60].map { Self.padded($0, 2) }
    return "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))T"
      + time.joined(separator: ":") + ".\(Self.padded(rest % 1000, 3))Z"
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, width - text.count)) + text
  }
}
