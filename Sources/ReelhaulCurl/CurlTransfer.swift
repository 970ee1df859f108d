import CReelhaulCurl
import Glibc

/// One request in progress, as its handler sees it.
// @unchecked: touched only on the client's loop; `cancel` and `resume` go through the client.
package final class CurlTransfer: @unchecked Sendable {
  enum State {
    /// Not given to libcurl yet.
    case new
    case running(EasyHandle)
    case finished
  }

  package typealias Completion = @Sendable (Result<Int, CurlError>) -> Void

  let request: CurlRequest
  let handler: any CurlHandler
  var state = State.new
  var collector = HeadCollector()
  /// Why the transfer ends, if the cause is known more exactly than libcurl's result tells.
  var failure: CurlError?
  /// The refused addresses, each the bytes of a `sockaddr`. The transfer failed for this reason, unless another address
  /// could be connected to.
  var refusedAddresses: [[UInt8]] = []
  /// Whether an address was permitted, and failed for another reason if the transfer did.
  var hasPermitted = false
  var isCanceled = false
  /// The server takes no more of the request's body.
  private var isRefused = false
  /// HTTP/2 is also offered, because the server refused HTTP/1.1.
  var offersHTTP2 = false
  var completion: Completion?
  private unowned let client: CurlClient

  init(request: CurlRequest, handler: any CurlHandler, client: CurlClient) {
    self.request = request
    self.handler = handler
    self.client = client
  }

  /// Continues after a ``CurlVerdict/pause``, soon and from the loop. Does nothing once the transfer has ended.
  package func resume() {
    client.resume(self)
  }
}

extension CurlTransfer {
  /// Whether the head of the answer is still to come.
  var isUnanswered: Bool { !collector.isComplete }

  /// Whether the request may be sent. False ends the transfer.
  func mayBegin() -> Bool {
    if request.mayBegin?() ?? true { return true }
    failure = .aborted
    return false
  }

  /// Receives one header line. False ends the transfer.
  func receive(line: UnsafeRawBufferPointer) -> Bool {
    switch collector.add(line: line) {
    case .more:
      return true
    case .tooLarge:
      failure = CurlError(.headTooLarge, message: "the response's head is larger than the limit")
      return false
    case .malformed:
      failure = CurlError(.badResponse, isRetryable: true, message: "the response's head is not HTTP")
      return false
    case .complete(let head):
      if head.status >= 300, request.body != nil {
        isRefused = true
        // libcurl waits for a body that has paused, although it will not send it.
        resume()
      }
      let verdict = handler.receive(head: head, of: self)
      // After a 417 libcurl would send the request again by itself, and nobody would see the answer to that.
      guard verdict != .abort, head.status != 417 || request.body == nil else {
        failure = .aborted
        return false
      }
      return true
    }
  }

  func receive(body: UnsafeRawBufferPointer) -> CurlVerdict {
    let verdict = handler.receive(body: body, of: self)
    if case .abort = verdict { failure = .aborted }
    return verdict
  }

  /// Fills `buffer` with the next bytes of the request's body. None end what libcurl sends, and the rest of the answer
  /// is received.
  func supply(_ buffer: UnsafeMutableRawBufferPointer) -> CurlSupply {
    guard let body = request.body, !isRefused else { return .bytes(0) }
    let supply = body.read(into: buffer, of: self)
    if case .abort = supply { failure = .aborted }
    return supply
  }

  func rewind() -> Bool { request.body?.rewind() ?? true }

  /// The cause of the end, from libcurl's result and the events before it.
  func error(result: CURLcode, of easy: EasyHandle) -> CurlError {
    if let failure { return failure }
    // libcurl reports a header line that exceeds its limit as "out of memory". Memory does not run out here.
    if result == CURLE_OUT_OF_MEMORY, !collector.isComplete {
      return CurlError(.headTooLarge, message: "a line of the response's head is longer than the limit")
    }
    // After the request was sent, these results describe the answer: HTTP/0.9, which is how any answer looks that is
    // not HTTP, or a line of a head or of trailers that libcurl does not accept.
    if result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_BAD_FUNCTION_ARGUMENT, easy.hasSent {
      return CurlError(
        .badResponse, isRetryable: true, message: easy.detail.isEmpty ? "the answer is not HTTP" : easy.detail)
    }
    if !refusedAddresses.isEmpty, !hasPermitted, result == CURLE_COULDNT_CONNECT {
      var error = CurlError(.addressRefused, message: "the network policy does not permit the address")
      error.refusedAddresses = refusedAddresses
      return error
    }
    if result == CURLE_PEER_FAILED_VERIFICATION {
      return .certificate(verdict: easy.certificateVerdict, detail: easy.detail)
    }
    if result == CURLE_COULDNT_RESOLVE_HOST, !Self.canResolve(detail: easy.detail) {
      return CurlError(
        .outOfResources, isRetryable: true,
        message: "the host's name cannot be looked up: the machine lacks threads or files")
    }
    // A machine that is off does not refuse.
    if result == CURLE_OPERATION_TIMEDOUT, !easy.hasConnected {
      return CurlError(.connectFailed, isRetryable: true, message: easy.detail)
    }
    return CurlError(result: result, detail: easy.detail)
  }

  /// Whether libcurl could ask for the name of a host: it does so on a thread, which tells it by a pair of sockets.
  private static func canResolve(detail: String) -> Bool {
    guard !detail.hasPrefix("getaddrinfo() thread failed to start") else { return false }
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else { return false }
    for end in ends { close(end) }
    return true
  }
}

extension CurlError {
  static let aborted = CurlError(.aborted, message: "refused by the receiver")
  package static let canceled = CurlError(.canceled, message: "canceled")
}
