import CReelhaulCurl
import Glibc
import ReelhaulSystem

/// A libcurl easy handle for one transfer. It is not reused: libcurl 7.88 would write into freed memory if the first
/// line of a head continues the last line of the transfer before. Connections and TLS sessions are kept without
/// reusing the handle.
///
/// The handle's address is the context of its callbacks, so its owner must keep it until it is removed from the multi
/// handle.
final class EasyHandle {
  let raw: UnsafeMutableRawPointer
  /// The transfer of this handle. It is set while the handle is in the multi handle.
  var transfer: CurlTransfer?
  /// TLS held more bytes than libcurl asked for when libcurl took the last bytes of the body.
  private(set) var hasSurplus = false
  private unowned let sockets: SocketTable
  private let permits: CurlOptions.AddressPredicate
  private let receiveBuffer: Int
  /// When libcurl ends a transfer that is too slow; nil for never.
  private var lowSpeed: CurlRequest.LowSpeed?
  /// The bytes of the request's body that libcurl has not taken yet.
  private var unsupplied: Int64 = 0
  private let errorText: UnsafeMutablePointer<CChar>
  private var headers: UnsafeMutablePointer<curl_slist>?

  init(share: UnsafeMutableRawPointer, sockets: SocketTable, options: CurlOptions) throws(CurlError) {
    guard let raw = curl_easy_init() else {
      throw CurlError(.outOfResources, isRetryable: true, message: "no memory for a transfer")
    }
    self.raw = raw
    self.sockets = sockets
    permits = options.permits
    receiveBuffer = options.receiveBuffer
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    try setFixed(share: share, options: options)
  }

  deinit {
    // In this order, because the handle refers to the list and the buffer.
    curl_easy_cleanup(raw)
    curl_slist_free_all(headers)
    errorText.deallocate()
  }

  private func setFixed(share: UnsafeMutableRawPointer, options: CurlOptions) throws(CurlError) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    try check(rh_easy_set_string(raw, CURLOPT_PROTOCOLS_STR, "http,https"))
    try check(rh_easy_set_long(raw, CURLOPT_NOSIGNAL, 1))
    // A canceled transfer must not make the loop wait for the resolver's thread, which ends by itself.
    try check(rh_easy_set_long(raw, CURLOPT_QUICK_EXIT, 1))
    try check(rh_easy_set_long(raw, CURLOPT_FOLLOWLOCATION, 0))
    try check(rh_easy_set_long(raw, CURLOPT_DISALLOW_USERNAME_IN_URL, 1))
    // With a proxy, libcurl would connect to the proxy, and the check of the server's address would be bypassed.
    try check(rh_easy_set_string(raw, CURLOPT_PROXY, ""))
    try check(rh_easy_set_long(raw, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2))
    try check(rh_easy_set_long(raw, CURLOPT_BUFFERSIZE, options.receiveBuffer))
    try check(rh_easy_set_long(raw, CURLOPT_TCP_KEEPALIVE, 1))
    try check(rh_easy_set_string(raw, CURLOPT_USERAGENT, options.userAgent))
    if let file = options.caFile { try check(rh_easy_set_string(raw, CURLOPT_CAINFO, file)) }
    // If a directory of certificates is set too, libcurl reads and parses the file again for every connection.
    if options.caFile != nil || rh_default_ca_file() != nil { try check(rh_easy_set_string(raw, CURLOPT_CAPATH, nil)) }
    try check(rh_easy_set_pointer(raw, CURLOPT_SHARE, share))
    try check(rh_easy_set_pointer(raw, CURLOPT_PRIVATE, context))
    try check(rh_easy_set_pointer(raw, CURLOPT_ERRORBUFFER, errorText))
    try check(rh_easy_set_pointer(raw, CURLOPT_HEADERDATA, context))
    try check(rh_easy_set_pointer(raw, CURLOPT_WRITEDATA, context))
    try check(rh_easy_set_pointer(raw, CURLOPT_OPENSOCKETDATA, context))
    // A connection lives longer than the handle that opened it, so its end is reported to the table of sockets.
    let table = Unmanaged.passUnretained(sockets).toOpaque()
    try check(rh_easy_set_pointer(raw, CURLOPT_CLOSESOCKETDATA, table))
    try check(rh_easy_set_pointer(raw, CURLOPT_PREREQDATA, context))
    try check(
      rh_easy_set_receiver(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        let easy = EasyHandle.of(context)
        guard let transfer = easy.transfer, transfer.receive(line: line) else { return 0 }
        if !transfer.isUnanswered, easy.unsupplied > 0 { easy.keepsConnection(false) }
        return line.count
      })
    try check(
      rh_easy_set_receiver(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
        let easy = EasyHandle.of(context)
        easy.hasSurplus = rh_easy_tls_pending(easy.raw) > 0
        switch easy.transfer?.receive(body: body) {
        case .continue: return body.count
        case .pause: return Int(CURL_WRITEFUNC_PAUSE)
        case .abort, nil: return body.isEmpty ? 1 : 0
        }
      })
    try check(
      rh_easy_set_opensocket(raw) { context, _, address in
        guard let context, let address else { return CURL_SOCKET_BAD }
        return EasyHandle.of(context).openSocket(address)
      })
    try check(
      rh_easy_set_closesocket(raw) { context, descriptor in
        Unmanaged<SocketTable>.fromOpaque(context!).takeUnretainedValue().close(descriptor)
        return 0
      })
    try check(
      rh_easy_set_prereq(raw) { context, peer, _, peerPort, localPort in
        let easy = EasyHandle.of(context)
        guard easy.transfer?.mayBegin() == true else { return CURL_PREREQFUNC_ABORT }
        // If a connection is shut there, libcurl cannot send over it and uses another one.
        easy.sockets.use(
          SocketRoute(
            localPort: Int(localPort), peer: SocketName(host: String(cString: peer!), port: Int(peerPort))))
        return CURL_PREREQFUNC_OK
      })
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> EasyHandle {
    Unmanaged<EasyHandle>.fromOpaque(context!).takeUnretainedValue()
  }

  /// Nil for a handle that libcurl has made for itself.
  static func of(raw: UnsafeMutableRawPointer) -> EasyHandle? {
    var context: UnsafeMutableRawPointer?
    rh_easy_get_pointer(raw, CURLINFO_PRIVATE, &context)
    return context.map { of($0) }
  }

  /// The socket of the connection that is kept for later requests, once the transfer is over; `CURL_SOCKET_BAD` if
  /// there is none.
  var keptSocket: Int32 { rh_easy_socket(raw) }

  /// Opens a socket if the policy permits the address.
  private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
    let length = Int(min(address.pointee.addrlen, UInt32(MemoryLayout<sockaddr_storage>.size)))
    // libcurl stores the whole address from `addr` on, although it is longer than the field's type.
    let start = UnsafeRawPointer(address) + (MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0)
    let bytes = UnsafeRawBufferPointer(start: start, count: length)
    guard permits(bytes) else {
      transfer?.refusedAddresses.append(Array(bytes))
      errno = EACCES
      return CURL_SOCKET_BAD
    }
    transfer?.hasPermitted = true
    let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.pointee.family, type, address.pointee.`protocol`)
    if descriptor >= 0 {
      sockets.own(descriptor)
    } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
      transfer?.failure = CurlError(.outOfResources, isRetryable: true, message: "\(SystemError.last("socket"))")
    }
    return descriptor
  }

  /// Applies `request` to the handle. Throws ``CurlError/Code/badRequest`` if the request cannot be sent.
  ///
  /// HTTP/2 costs more per byte, and its windows make pausing expensive. So it is offered only on demand, and only
  /// over TLS.
  func prepare(_ request: CurlRequest, offersHTTP2: Bool) throws(CurlError) {
    let version = offersHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
    try check(rh_easy_set_long(raw, CURLOPT_HTTP_VERSION, Int(version)))
    try check(rh_easy_set_string(raw, CURLOPT_URL, request.url))
    if request.isSentOnce { try check(rh_easy_set_long(raw, CURLOPT_FRESH_CONNECT, 1)) }
    if request.keepsPath { try check(rh_easy_set_long(raw, CURLOPT_PATH_AS_IS, 1)) }
    try setMethod(request)
    let isSentAtOnce = request.method == .put && request.body?.size ?? 0 <= CurlRequest.sentAtOnce
    try setHeaders(request.headers + (isSentAtOnce ? [("Expect", "")] : []))
    try check(rh_easy_set_long(raw, CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(request.connectTimeout)))
    try check(rh_easy_set_long(raw, CURLOPT_TIMEOUT_MS, request.deadline.map(Self.milliseconds) ?? 0))
    lowSpeed = request.lowSpeed
    unsupplied = request.body?.size ?? 0
    watchSpeed(true)
    setPatience()
    // The answer to a body is short.
    if let size = request.receiveBuffer ?? request.body.map({ _ in 16 << 10 }), size < receiveBuffer {
      try check(rh_easy_set_long(raw, CURLOPT_BUFFERSIZE, size))
    }
  }

  /// Whether a transfer that is too slow ends. libcurl itself excepts only those whose receiver has paused, and the
  /// server cannot be faster than the body is supplied.
  func watchSpeed(_ isWatched: Bool) {
    rh_easy_set_long(raw, CURLOPT_LOW_SPEED_LIMIT, isWatched ? lowSpeed?.bytesPerSecond ?? 0 : 0)
  }

  /// How long it may be too slow now.
  private func setPatience() {
    let seconds = unsupplied > 0 ? lowSpeed?.seconds : lowSpeed?.answerSeconds
    rh_easy_set_long(raw, CURLOPT_LOW_SPEED_TIME, seconds ?? 0)
  }

  private func setMethod(_ request: CurlRequest) throws(CurlError) {
    switch request.method {
    case .get: return
    case .head: return try check(rh_easy_set_long(raw, CURLOPT_NOBODY, 1))
    case .put, .post, .patch:
      try check(rh_easy_set_long(raw, CURLOPT_UPLOAD, 1))
      try check(rh_easy_set_offset(raw, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body?.size ?? 0)))
      try setSender(of: request.body?.size ?? 0)
    case .delete, .options: break
    }
    try check(rh_easy_set_string(raw, CURLOPT_CUSTOMREQUEST, request.method.rawValue))
  }

  private func setSender(of size: Int64) throws(CurlError) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    try check(rh_easy_set_pointer(raw, CURLOPT_READDATA, context))
    try check(rh_easy_set_pointer(raw, CURLOPT_SEEKDATA, context))
    // How long it waits for a server that may refuse the request before its body.
    try check(rh_easy_set_long(raw, CURLOPT_EXPECT_100_TIMEOUT_MS, 500))
    try check(rh_easy_set_long(raw, CURLOPT_UPLOAD_BUFFERSIZE, Int(min(256 << 10, max(16 << 10, size)))))
    try check(
      rh_easy_set_sender(raw) { bytes, size, count, context in
        let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
        let easy = EasyHandle.of(UnsafeMutableRawPointer(context))
        switch easy.transfer?.supply(buffer) {
        case .bytes(let count):
          easy.unsupplied -= Int64(count)
          if easy.unsupplied <= 0 {
            easy.setPatience()
            easy.keepsConnection(true)
          }
          return count
        case .pause:
          easy.watchSpeed(false)
          return Int(CURL_READFUNC_PAUSE)
        case .abort, nil: return Int(CURL_READFUNC_ABORT)
        }
      })
    try check(
      rh_easy_set_seek(raw) { context, offset, origin in
        guard offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        let easy = EasyHandle.of(context)
        guard let transfer = easy.transfer, transfer.rewind() else { return CURL_SEEKFUNC_FAIL }
        easy.unsupplied = transfer.request.body?.size ?? 0
        easy.setPatience()
        return CURL_SEEKFUNC_OK
      })
  }

  /// After an answer that came while the body waited for `100 Continue`, libcurl (7.88) sends no more of it, and would keep
  /// the connection: the server could take the next request for the rest of the body.
  private func keepsConnection(_ keeps: Bool) {
    rh_easy_set_long(raw, CURLOPT_FORBID_REUSE, keeps ? 0 : 1)
  }

  private func setHeaders(_ fields: [(name: String, value: String)]) throws(CurlError) {
    var list: UnsafeMutablePointer<curl_slist>?
    for (name, value) in fields {
      let isSafe = !name.isEmpty && !(name + value).utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 }
      // libcurl needs "Name;" for a field with an empty value; "Name:" would remove the field.
      let isRemoved = value.isEmpty && name == "Expect"
      let line = isRemoved ? "\(name):" : value.isEmpty ? "\(name);" : "\(name): \(value)"
      guard isSafe, let longer = curl_slist_append(list, line) else {
        curl_slist_free_all(list)
        throw CurlError(.badRequest, message: "a header field cannot be sent")
      }
      list = longer
    }
    headers = list
    try check(rh_easy_set_list(raw, CURLOPT_HTTPHEADER, list))
  }

  /// At least 1, because 0 means no limit.
  private static func milliseconds(_ duration: Duration) -> Int { max(1, Int(duration.milliseconds)) }

  private func check(_ result: CURLcode) throws(CurlError) {
    guard result != CURLE_OK else { return }
    throw CurlError(result: result, detail: detail)
  }

  /// libcurl's own sentence about its last failure, or empty.
  var detail: String { String(cString: errorText) }

  /// OpenSSL's number for the fault in the signatures of the server's certificate; 0 if they are correct.
  var certificateVerdict: Int { number(CURLINFO_SSL_VERIFYRESULT) }

  /// Whether a part of the request was sent.
  var hasSent: Bool { number(CURLINFO_REQUEST_SIZE) > 0 }

  /// Whether the transfer had a connection.
  var hasConnected: Bool { number(CURLINFO_PRIMARY_PORT) != 0 }

  var usedHTTP2: Bool { number(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) }

  private func number(_ info: CURLINFO) -> Int {
    var value = 0
    rh_easy_get_long(raw, info, &value)
    return value
  }

  /// How many connections were opened for the finished transfer.
  var newConnections: Int { number(CURLINFO_NUM_CONNECTS) }
}
