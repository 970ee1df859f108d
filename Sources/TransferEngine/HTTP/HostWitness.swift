import ReelhaulCurl

/// Stands before the body and the handler of a request, and sees what the host makes of it: it serves the request from
/// its answer on, or from when it takes a body which libcurl does not send before it may.
// @unchecked: used only on the client's loop, and after its end by the caller.
final class HostWitness: CurlHandler, CurlBody, @unchecked Sendable {
  private let body: (any CurlBody)?
  private let handler: any CurlHandler
  private let served: () -> Void
  private var hasHead = false
  private(set) var fate = HostConnections.Fate.other

  /// - Parameter served: Called once, when the host begins to serve the request.
  init(_ body: (any CurlBody)?, _ handler: any CurlHandler, served: @escaping () -> Void) {
    self.body = body
    self.handler = handler
    self.served = served
  }

  /// The request has ended with this error.
  func failed(_ error: CurlError) {
    if !hasHead { saw(HostConnections.Fate(status: nil, error: error.code)) }
  }

  private func saw(_ next: HostConnections.Fate) {
    guard fate != .served else { return }
    fate = next == .refused ? .refusedUpload : next
    if fate == .served { served() }
  }

  // MARK: CurlHandler

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    hasHead = true
    saw(HostConnections.Fate(status: head.status) == .refused ? .refused : .served)
    return handler.receive(head: head, of: transfer)
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    handler.receive(body: body, of: transfer)
  }

  // MARK: CurlBody

  var size: Int64 { body?.size ?? 0 }

  func read(into buffer: UnsafeMutableRawBufferPointer, of transfer: CurlTransfer) -> CurlSupply {
    // A small one is sent with the head, before the host has seen it.
    if size > CurlRequest.sentAtOnce { saw(.served) }
    return body?.read(into: buffer, of: transfer) ?? .bytes(0)
  }

  func rewind() -> Bool { body?.rewind() ?? true }
}
