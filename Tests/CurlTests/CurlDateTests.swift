import ReelhaulCurl
import Testing

@Suite struct CurlDateTests {
  @Test(
    "the form that servers must send is read exactly",
    arguments: [
      ("Sat, 21 Nov 2026 14:17:26 GMT", 1_795_270_646 as Int64), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Tue, 29 Feb 2028 23:59:59 GMT", 1_835_481_599),
    ])
  func exact(_ text: String, _ seconds: Int64) {
    #expect(CurlDate.exactSeconds(text) == seconds)
    #expect(CurlDate.seconds(text) == seconds)
  }

  @Test(
    "every other form is not exact",
    arguments: [
      "", "Saturday, 21-Nov-26 14:17:26 GMT", "Sat Nov 21 14:17:26 2026", "Sat, 31 Feb 2026 14:17:26 GMT",
      "Sat, 21 Nov 2026 14:17:26 CET", "Sat, 21 Nov 2026 14:17 GMT", "Sat, 21 Nov 2026", "21 Nov 2026 14:17:26 GMT",
      " Sat, 21 Nov 2026 14:17:26 GMT", "Sat, 21 Nov 2026 14:17:26 GMT ", "Sun, 21 Nov 2026 14:17:26 GMT",
      "Sat, 21 Nov 2026 14:17:60 GMT",
    ])
  func notExact(_ text: String) {
    #expect(CurlDate.exactSeconds(text) == nil)
  }

  @Test("Retry-After may come in the obsolete forms, too")
  func lenient() {
    #expect(CurlDate.seconds("Saturday, 21-Nov-26 14:17:26 GMT") == 1_795_270_646)
    #expect(CurlDate.seconds("Sat Nov 21 14:17:26 2026") == 1_795_270_646)
  }

  @Test(
    "what is not between 1970 and 9999 is no date",
    arguments: [
      "Tue, 15 Nov 300000 12:45:26 GMT", "Tue, 15 Nov 2147483647 12:45:26 GMT", "Sat, 01 Jan 10000 00:00:00 GMT",
      "Wed, 31 Dec 1969 23:59:58 GMT",
    ])
  func farAway(_ text: String) {
    #expect(CurlDate.seconds(text) == nil)
  }
}
