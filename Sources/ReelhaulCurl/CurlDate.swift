import CReelhaulCurl

/// A date of HTTP's header fields, in any of the forms that libcurl reads.
package enum CurlDate {
  /// Seconds since 1970, or `nil` for what is no date.
  package static func seconds(_ text: String) -> Int64? {
    let time = curl_getdate(text, nil)
    return time == -1 ? nil : Int64(time)
  }
}
