import CReelhaulCurl
import Glibc

/// A date of HTTP's header fields.
package enum CurlDate {
  /// Seconds since 1970, from a date in any of the forms that libcurl reads; `nil` for any other text, and for what is not
  /// between 1970 and 9999: libcurl reads a year of any length.
  package static func seconds(_ text: String) -> Int64? {
    let time = Int64(curl_getdate(text, nil))
    return 0...253_402_300_799 ~= time ? time : nil
  }

  /// The same, of the one form that servers must send (RFC 9110, 5.6.7): `Sat, 21 Nov 2026 14:17:26 GMT`.
  package static func exactSeconds(_ text: String) -> Int64? {
    seconds(text).flatMap { Self.text($0) == text ? $0 : nil }
  }

  /// In that form. The names of days and months are English: no locale is ever set.
  private static func text(_ seconds: Int64) -> String? {
    var (time, parts) = (time_t(seconds), tm())
    guard gmtime_r(&time, &parts) != nil else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      strftime(buffer.baseAddress, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts) == 0
        ? nil : buffer.baseAddress.map { String(cString: $0) }
    }
  }
}
