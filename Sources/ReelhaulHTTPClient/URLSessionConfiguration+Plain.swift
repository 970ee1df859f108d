import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
  /// Without cookies and a cache. `timeout` is for silence; Foundation counts whole seconds, and waiting for a connection
  /// too, so that there are enough for all calls that wait for an answer.
  static func plain(timeout: Duration) -> URLSessionConfiguration {
    let settings = URLSessionConfiguration.ephemeral
    settings.timeoutIntervalForRequest = max(1, timeout.timeInterval.rounded(.up))
    settings.httpMaximumConnectionsPerHost = 256
    settings.httpCookieStorage = nil
    settings.urlCache = nil
    return settings
  }
}
