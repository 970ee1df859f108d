import CReelhaulCurl
import ReelhaulSystem

/// One libcurl multi handle, driven by the loop: it takes socket events and one timer, and returns finished transfers.
// @unchecked: touched only on the loop's thread.
final class MultiHandle: @unchecked Sendable {
  private let loop: EventLoop
  private let raw: UnsafeMutableRawPointer
  /// DNS results and TLS sessions for the handles of this loop. No lock is needed, because one thread uses it.
  let share: UnsafeMutableRawPointer
  private(set) var sockets: SocketTable!
  private let onFinish: @Sendable (UnsafeMutableRawPointer, CURLcode) -> Void
  private var timer: LoopTimer?
  /// Counts libcurl's timer requests, so that an outdated request is ignored.
  private var timerWish = 0
  private var isClosed = false
  private let idleConnections: Int
  /// How many transfers it has.
  private var count = 0 {
    didSet { limitConnections() }
  }

  /// `onFinish` receives an easy handle, which is already removed, and libcurl's result. Call it on the loop.
  init(
    loop: EventLoop, idleConnections: Int, onFinish: @escaping @Sendable (UnsafeMutableRawPointer, CURLcode) -> Void
  ) throws(CurlError) {
    guard CurlGlobal.isReady, let raw = curl_multi_init(), let share = curl_share_init() else {
      throw CurlError(.outOfResources, isRetryable: true, message: "libcurl cannot be initialised")
    }
    self.loop = loop
    self.idleConnections = idleConnections
    self.raw = raw
    self.share = share
    self.onFinish = onFinish
    sockets = SocketTable(loop: loop) { [unowned self] in drive($0, events: $1) }
    rh_share_set(share, CURL_LOCK_DATA_DNS)
    rh_share_set(share, CURL_LOCK_DATA_SSL_SESSION)
    let context = Unmanaged.passUnretained(self).toOpaque()
    limitConnections()
    rh_multi_set_long(raw, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
    rh_multi_set_pointer(raw, CURLMOPT_SOCKETDATA, context)
    rh_multi_set_pointer(raw, CURLMOPT_TIMERDATA, context)
    rh_multi_set_socket_function(raw) { easy, descriptor, what, context, _ in
      let multi = MultiHandle.of(context)
      if what == CURL_POLL_REMOVE, let easy { multi.leave(descriptor, of: easy) }
      return multi.sockets.watch(descriptor, what: what) ? 0 : -1
    }
    rh_multi_set_timer_function(raw) { _, milliseconds, context in
      MultiHandle.of(context).setTimer(milliseconds)
      return 0
    }
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> MultiHandle {
    Unmanaged<MultiHandle>.fromOpaque(context!).takeUnretainedValue()
  }

  /// libcurl counts the connections that are in use as well: with a fixed limit, many transfers would keep none for the
  /// next request.
  private func limitConnections() {
    rh_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count + idleConnections)
  }

  func add(_ easy: EasyHandle) throws(CurlError) {
    let result = curl_multi_add_handle(raw, easy.raw)
    guard result == CURLM_OK else { throw .multi(result) }
    count += 1
  }

  func remove(_ easy: EasyHandle) { remove(raw: easy.raw) }

  private func remove(raw easy: UnsafeMutableRawPointer) {
    curl_multi_remove_handle(raw, easy)
    count -= 1
  }

  /// Continues a paused transfer. libcurl delivers the bytes that it kept within this call. Returns libcurl's result:
  /// if the receiver refuses those bytes, the caller must end the transfer.
  func resume(_ easy: EasyHandle) -> CURLcode {
    easy.watchSpeed(true)
    let result = curl_easy_pause(easy.raw, CURLPAUSE_CONT)
    finish()
    return result
  }

  /// Ends every connection. All easy handles must be removed before. ``freeShare()`` frees the share once they are
  /// released.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    timerWish += 1
    timer?.cancel()
    timer = nil
    // This call closes idle connections, through the table of sockets.
    curl_multi_cleanup(raw)
    sockets.closeAll()
  }

  /// Call it after ``close()``, and after the last easy handle that uses the share is released.
  func freeShare() {
    curl_share_cleanup(share)
  }

  /// Stores libcurl's timer request. It cannot be carried out here, because libcurl may call this from inside
  /// `socket_action`.
  private func setTimer(_ milliseconds: Int) {
    timerWish += 1
    timer?.cancel()
    timer = nil
    guard milliseconds >= 0 else { return }
    let wish = timerWish
    let body: @Sendable () -> Void = { [weak self] in
      guard let self, timerWish == wish, !isClosed else { return }
      timer = nil
      drive(CURL_SOCKET_BAD, events: [])
    }
    if milliseconds == 0 {
      loop.execute(body)
    } else {
      // Libcurl watches each transfer's speed once a second. With many transfers these times are all different.
      let slack = milliseconds >= Self.longWait ? Self.slack : .zero
      timer = loop.timer(after: .milliseconds(milliseconds), slack: slack, body)
    }
  }

  /// Waits of so many milliseconds may be a little longer.
  private static let longWait = 200
  private static let slack = Duration.milliseconds(50)

  /// Tells libcurl about events on a socket, or with `CURL_SOCKET_BAD` that its timer has fired.
  private func drive(_ descriptor: Int32, events: PollEvents) {
    guard !isClosed else { return }
    var mask: Int32 = 0
    if events.contains(.readable) { mask |= CURL_CSELECT_IN }
    if events.contains(.writable) { mask |= CURL_CSELECT_OUT }
    if events.contains(.failed) { mask |= CURL_CSELECT_ERR }
    var running: Int32 = 0
    curl_multi_socket_action(raw, descriptor, mask, &running)
    finish()
  }

  /// libcurl watches `descriptor` no more. If it still keeps that connection for a request without an answer, the server
  /// has ended the connection while the body of the request pauses. libcurl would tell that only when it sends again.
  private func leave(_ descriptor: Int32, of raw: UnsafeMutableRawPointer) {
    guard let transfer = EasyHandle.of(raw: raw)?.transfer, transfer.isUnanswered else { return }
    loop.execute { [weak self] in
      guard let self, !isClosed, sockets.isLeft(descriptor), transfer.isUnanswered,
        case .running(let easy) = transfer.state
      else { return }
      remove(easy)
      onFinish(easy.raw, CURLE_GOT_NOTHING)
    }
  }

  /// Takes out the finished transfers. A message is valid until its handle is removed.
  private func finish() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(raw, &left) {
      let result = message.pointee.data.result
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
        let handle = EasyHandle.of(raw: easy)
      else { continue }
      // Not for HTTP/2: there every frame names its request, and some frames belong to no request.
      if !handle.usedHTTP2 { sockets.rest(handle.keptSocket, hasSurplus: handle.hasSurplus) }
      remove(raw: easy)
      onFinish(easy, result)
    }
  }
}

/// libcurl's process-wide state, made once before the first handle and never torn down.
enum CurlGlobal {
  static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
}
