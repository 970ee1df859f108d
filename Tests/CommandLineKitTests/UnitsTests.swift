import CommandLineKit
import Testing

@Suite struct UnitsTests {
  @Test(
    "numbers of bytes are read with binary and decimal units",
    arguments: [
      ("0", 0), ("500", 500), ("10MiB", 10 << 20), ("10mib", 10 << 20), ("10 MiB", 10 << 20), ("1.5GB", 1_500_000_000),
      ("64k", 64000), ("64ki", 65536), ("1T", 1_000_000_000_000), ("7B", 7), ("9223372036854775807", Int64.max),
      ("0.5KiB", 512),
    ] as [(String, Int64)])
  func readsBytes(_ text: String, _ bytes: Int64) {
    #expect(ByteCount(text)?.bytes == bytes)
  }

  @Test(
    "text that is not a number of bytes is refused",
    arguments: [
      "", "-1", "x", "1x", "1.", ".5", "1KB2", "1..2", "9223372036854775808", "9000000TiB", "MiB", "1 2", "1.5", "0.4",
      "5 ", "1.5B", "8388608.0TiB",
    ])
  func refusesOtherTextAsBytes(_ text: String) {
    #expect(ByteCount(text) == nil)
  }

  @Test(
    "numbers of bytes are written with about three digits",
    arguments: [
      (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (10 << 20, "10.0 MiB"), (104 << 20, "104 MiB"),
      (1 << 30, "1.0 GiB"), (Int64.max, "8.0 EiB"),
    ] as [(Int64, String)])
  func writesBytes(_ bytes: Int64, _ text: String) {
    #expect(ByteCount(bytes).description == text)
  }

  @Test(
    "durations are read with their units",
    arguments: [
      ("30s", 30000), ("250ms", 250), ("1.5h", 5_400_000), ("2m30s", 150_000), ("1d", 86_400_000), ("0s", 0),
      ("1157407d", 99_999_964_800_000),
    ] as [(String, Int64)])
  func readsDurations(_ text: String, _ milliseconds: Int64) {
    #expect(DurationText.parse(text) == .milliseconds(milliseconds))
  }

  @Test(
    "text that is not a duration is refused",
    arguments: ["", "30", "0", "-1", "h", "1x", "2m30", "1.h", "1e9d", " 1", "1h1h", "5s2m", "1ms1s", "1157408d"])
  func refusesOtherTextAsDuration(_ text: String) {
    #expect(DurationText.parse(text) == nil)
  }

  @Test("lists are split at commas", arguments: [("a", ["a"]), ("a,b c", ["a", "b c"]), ("a=,b", ["a=", "b"])])
  func readsLists(_ text: String, _ items: [String]) {
    #expect(CommaList.parse(text) == items)
  }

  @Test(
    "lists with empty items or spaces around items are refused",
    arguments: ["", ",", "a,", ",a", "a,,b", "a, b", " a", "a "])
  func refusesListsWithSlips(_ text: String) {
    #expect(CommaList.parse(text) == nil)
  }

  @Test(
    "a waiting time is written as a clock",
    arguments: [(7, "0:07"), (750, "12:30"), (3723, "1:02:03"), (273_600, "3d 04:00"), (-1, "0:00")]
      as [(Int64, String)])
  func writesClocks(_ seconds: Int64, _ text: String) {
    #expect(DurationText.clock(seconds: seconds) == text)
  }

  @Test(
    "an age is written with its two largest units",
    arguments: [
      (850, "850 ms"), (12_500, "12 s"), (200_000, "3 min"), (7_500_000, "2 h 5 min"), (400_000_000, "4 d"),
    ])
  func writesAges(_ milliseconds: Int, _ text: String) {
    #expect(DurationText.brief(.milliseconds(milliseconds)) == text)
  }
}
