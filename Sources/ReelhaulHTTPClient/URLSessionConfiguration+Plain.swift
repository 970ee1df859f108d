import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
  /// Without cookies and a cache. `timeout` is for silence.
  static func plain(timeout: Duration) -> URLSessionConfiguration {
    let settings = URLSessionConfiguration.ephemeral
    settings.timeoutIntervalForRequest = timeout.timeInterval
    settings.httpCookieStorage = nil
    settings.urlCache = nil
    return settings
  }
}
