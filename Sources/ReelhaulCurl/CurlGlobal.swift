import CReelhaulCurl

/// libcurl's process-wide state: set up once before the first handle, and never torn down.
enum CurlGlobal {
  static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}
