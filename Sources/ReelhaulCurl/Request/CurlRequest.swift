/// One HTTP request. Redirects are not followed: the first response is the result.
package struct CurlRequest: Sendable {
  package enum Method: String, Sendable {
    case get = "GET"
    case head = "HEAD"
    case put = "PUT"
    case post = "POST"
    case patch = "PATCH"
    case delete = "DELETE"
    case options = "OPTIONS"
  }

  /// Aborts a transfer that stays below `bytesPerSecond` for `seconds`; for `answerSeconds`, once libcurl has the whole body
  /// of the request: a server may work on it before it answers. Time in which the transfer is paused does not count.
  package struct LowSpeed: Hashable, Sendable {
    package var bytesPerSecond: Int
    package var seconds: Int
    package var answerSeconds: Int

    package init(bytesPerSecond: Int, seconds: Int, answerSeconds: Int? = nil) {
      self.bytesPerSecond = bytesPerSecond
      self.seconds = seconds
      self.answerSeconds = answerSeconds ?? seconds
    }
  }

  /// The largest body of a PUT that is sent with its head. To wait for `100 Continue` costs a round trip, or half a second
  /// if the server knows none, which a small body is not worth. After such an answer libcurl repeats nothing by itself, so
  /// a method that is not idempotent waits for it.
  package static let sentAtOnce: Int64 = 256 << 10

  package var method: Method
  /// `http://` or `https://`, without a user name and password.
  package var url: String
  /// Sent unchanged, after libcurl's own `Host`, `Accept` and `User-Agent`, which these fields may override. An empty
  /// `Expect` removes libcurl's own.
  package var headers: [(name: String, value: String)]
  package var connectTimeout: Duration
  package var lowSpeed: LowSpeed?
  /// The limit for the whole transfer from its start, including pauses.
  package var deadline: Duration?
  /// The body to send; nil for none. A PUT, POST or PATCH without one has an empty body.
  package var body: (any CurlBody)?
  /// Whether `.` and `..` between the slashes of the path are sent as they are.
  package var keepsPath = false
  /// Whether it must not be sent again by itself: libcurl repeats any request that gets no answer on a connection which
  /// it has used before, and cannot know whether it was carried out. So it gets a connection of its own.
  package var isSentOnce = false
  /// Asked when the connection is there, before anything is sent. False ends the transfer with
  /// ``CurlError/Code/aborted``.
  package var mayBegin: (@Sendable () -> Bool)?
  /// Bytes that are read at once, if that is to be less than the client's ``CurlOptions/receiveBuffer``.
  package var receiveBuffer: Int?

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

/// What becomes of a transfer after a callback.
package enum CurlVerdict: Sendable {
  case `continue`
  /// The bytes of this call are kept by libcurl and given again after ``CurlTransfer/resume()``. Not for heads.
  case pause
  /// Ends the transfer with ``CurlError/Code/aborted`` and closes its connection.
  case abort
}

/// What receives a response, on the loop's thread, within libcurl's callbacks: it must neither block nor start,
/// resume or end a transfer there.
package protocol CurlHandler: AnyObject, Sendable {
  /// The final response's head is complete; informational (1xx) ones are left out. Before any body byte.
  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict
  /// Receives body bytes, at most 16 KiB. They are valid only during the call.
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict
}
