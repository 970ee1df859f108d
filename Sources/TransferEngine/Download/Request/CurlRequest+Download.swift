import ReelhaulCurl
import TaskCore

extension CurlRequest {
  /// The HTTP request for a request of ``DownloadMachine`` to `place`, to which redirects may have led. `credential`
  /// has the header fields of the credential that the task names.
  init(
    _ request: DownloadMachine.Request, to place: Place, spec: TaskSpec, credential: [HeaderField],
    context: DownloadContext
  ) {
    let options = context.options
    var headers: [(name: String, value: String)] = [("Accept-Encoding", "identity")]
    var deadline: Duration?
    switch request.asked {
    case .first(let count): headers.append(("Range", "bytes=0-\(count - 1)"))
    case .part(let range, _): headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    case .whole: break
    }
    if let validator = request.ifRange { headers.append(("If-Range", validator)) }
    // The task's header fields and credential go only to the source's own server.
    if place.isAtOrigin {
      headers += spec.headers.overridden(by: credential).map { ($0.name, $0.value) }
    }
    var lowSpeed = options.lowSpeed
    if let rate = [spec.rate, context.root.limiter?.share].compactMap({ $0 }).min() {
      // The limit may leave a connection less than what a server is expected to send.
      let share = rate / Int64(4 * max(1, options.limits.connections))
      lowSpeed.bytesPerSecond = Int(max(1, min(Int64(lowSpeed.bytesPerSecond), share)))
    } else if request.asked != .whole {
      deadline = options.chunkDeadline
    }
    self.init(
      url: place.url, headers: headers, connectTimeout: options.connectTimeout, lowSpeed: lowSpeed, deadline: deadline
    )
  }
}

extension Exchange {
  init(
    _ request: DownloadMachine.Request, source: CurlURL, object: S3URL? = nil, destination: StorageURL,
    options: DownloadOptions, mayLoseTLS: Bool = false
  ) {
    self.init(
      request.asked, at: request.place, source: source,
      isMedia: ResponseGate.isMedia(path: source.path) || ResponseGate.isMedia(path: destination.path),
      object: object, redirects: options.limits.redirects, mayLoseTLS: mayLoseTLS)
  }
}
