import Testing

@testable import TaskCore

struct TimestampTests {
  @Test(
    "times are written and read in RFC 3339",
    arguments: [
      ("1970-01-01T00:00:00.000000Z", 0), ("2026-11-21T14:17:26.123456Z", 1_795_270_646_123_456),
      ("2000-02-29T23:59:59.000000Z", 951_868_799_000_000), ("1969-12-31T23:59:59.999999Z", -1),
    ] as [(String, Int64)])
  func writesAndReads(text: String, microseconds: Int64) {
    #expect(Timestamp(microseconds: microseconds).description == text)
    #expect(Timestamp(text)?.microseconds == microseconds)
  }

  @Test(
    "offsets from UTC and fractions of a second are read",
    arguments: [
      ("2026-11-21T14:17:26Z", 1_795_270_646_000_000), ("2026-11-21t16:17:26.5+02:00", 1_795_270_646_500_000),
      ("2026-11-21 13:47:26.1234567-00:30", 1_795_270_646_123_456),
    ] as [(String, Int64)])
  func readsOffsetsAndFractions(text: String, microseconds: Int64) {
    #expect(Timestamp(text)?.microseconds == microseconds)
  }

  /// The examples of RFC 3339, 5.8, and the same seconds in other time zones.
  @Test(
    "a leap second is read as the next second",
    arguments: [
      ("1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000000Z"),
      ("1990-12-31T15:59:60.25-08:00", "1991-01-01T00:00:00.250000Z"),
      ("2015-07-01T01:59:60+02:00", "2015-07-01T00:00:00.000000Z"),
    ])
  func leapSecondsAreTheNextSecond(text: String, expected: String) {
    #expect(Timestamp(text)?.description == expected)
  }

  @Test(
    "second 60 is refused except at the end of a month in UTC",
    arguments: [
      "2026-11-21T14:17:60Z", "2026-11-21T23:59:60Z", "1990-12-31T23:59:60-08:00", "1990-12-31T23:59:61Z",
      "2026-11-30T22:59:60Z",
    ])
  func leapSecondsAreAtTheEndOfAMonth(text: String) {
    #expect(throws: text.contains(":61") ? InvalidTimestamp.form : .leapSecond) { try Timestamp(rfc3339: text) }
    #expect(Timestamp(text) == nil)
  }

  @Test(
    "text that is not a time is refused",
    arguments: [
      "", "2026-11-21", "2026-11-21T14:17:26", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-21T24:00:00Z",
      "2026-11-21T14:17:26.Z", "2026-11-21T14:17:26Zx", "0000-01-01T00:00:00Z", "2026-11-21T14:17:26+2:00",
      "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z", "294276-12-31T23:59:59Z",
      "infinity",
    ])
  func refusesOtherText(text: String) {
    #expect(Timestamp(text) == nil)
  }

  /// PostgreSQL has times that RFC 3339 cannot express.
  @Test("a time that RFC 3339 cannot express is written as the nearest one")
  func timesOutOfRangeAreWrittenAsTheNearest() {
    for microseconds in [Int64.max, 9_223_371_331_200_000_000, 253_402_300_800_000_000] as [Int64] {
      #expect(Timestamp(microseconds: microseconds).description == "9999-12-31T23:59:59.999999Z")
    }
    for microseconds in [Int64.min, -62_135_596_800_000_001] as [Int64] {
      #expect(Timestamp(microseconds: microseconds).description == "0001-01-01T00:00:00.000000Z")
    }
    #expect(Timestamp("0001-01-01T00:00:00Z")?.description == "0001-01-01T00:00:00.000000Z")
    #expect(Timestamp("9999-12-31T23:59:59.999999Z")?.description == "9999-12-31T23:59:59.999999Z")
  }

  @Test("a time on any day is read back as it was written")
  func everyDayComesBack() {
    for day in stride(from: -719_000 as Int64, to: 2_900_000, by: 17) {
      let time = Timestamp(microseconds: day * 86_400_000_000 + 1)
      #expect(Timestamp(time.description) == time)
    }
  }
}
