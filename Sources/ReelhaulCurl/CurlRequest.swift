/// One HTTP request. Redirects are not followed: the first response is the result.
package struct CurlRequest: Sendable {
  package enum Method: Sendable {
    case get
    case head
  }

  /// Aborts a transfer that stays below `bytesPerSecond` for `seconds`. Time in which the transfer is paused does not
  /// count.
  package struct LowSpeed: Hashable, Sendable {
    package var bytesPerSecond: Int
    package var seconds: Int

    package init(bytesPerSecond: Int, seconds: Int) {
      self.bytesPerSecond = bytesPerSecond
      self.seconds = seconds
    }
  }

  package var method: Method
  /// `http://` or `https://`, without a user name and password.
  package var url: String
  /// Sent unchanged, after libcurl's own `Host`, `Accept` and `User-Agent`, which these fields may override.
  package var headers: [(name: String, value: String)]
  package var connectTimeout: Duration
  package var lowSpeed: LowSpeed?
  /// The limit for the whole transfer from its start, including pauses.
  package var deadline: Duration?

  package init(
    _ method: Method = .get, url: String, headers: [(name: String, value: String)] = [],
    connectTimeout: Duration = .seconds(15), lowSpeed: LowSpeed? = LowSpeed(bytesPerSecond: 512, seconds: 30),
    deadline: Duration? = nil
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.connectTimeout = connectTimeout
    self.lowSpeed = lowSpeed
    self.deadline = deadline
  }
}
