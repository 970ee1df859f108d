import CReelhaulCurl

/// A date of an HTTP header field, in any form that libcurl reads.
package enum CurlDate {
  /// Seconds since 1970, or nil if the text is not a date.
  package static func seconds(_ text: String) -> Int64? {
    let time = curl_getdate(text, nil)
    return time == -1 ? nil : Int64(time)
  }
}
