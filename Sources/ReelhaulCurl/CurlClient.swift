import CReelhaulCurl
import ReelhaulSystem

/// HTTP transfers on one event loop, with one multi handle, one pool of connections and one address policy.
///
/// A reused connection is not checked again, so two policies need two clients.
// @unchecked: the state is touched only on the loop; `perform` and `close` move there first.
package final class CurlClient: @unchecked Sendable {
  package let loop: EventLoop
  private let options: CurlOptions
  private var multi: MultiHandle?
  private var running: [UnsafeMutableRawPointer: EasyHandle] = [:]
  private var isClosed = false
  /// `host:port` of servers that speak only HTTP/2, and until when that is believed: a handshake may fail for another
  /// reason, and most servers speak both.
  private var http2Servers: [String: BootInstant] = [:]
  private static let belief = Duration.seconds(600)

  package init(loop: EventLoop, options: CurlOptions) {
    self.loop = loop
    self.options = options
  }

  /// Performs `request` and gives its response to `handler` on the loop. Returns when the transfer is over. Canceling
  /// the task ends the transfer with ``CurlError/Code/canceled``. Any task may call it; tasks of the loop call it
  /// without changing threads. Returns how many connections were opened for it; 0 if one was reused.
  @discardableResult
  package func perform(
    _ request: CurlRequest, handler: any CurlHandler
  ) async throws(CurlError) -> Int {
    let transfer = CurlTransfer(request: request, handler: handler, client: self)
    let result = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Result<Int, CurlError>, Never>) in
        loop.onLoopNow {
          transfer.completion = { continuation.resume(returning: $0) }
          self.start(transfer)
        }
      }
    } onCancel: {
      loop.execute { self.cancel(transfer) }
    }
    return try result.get()
  }

  /// Ends every transfer with ``CurlError/Code/canceled`` and closes all connections. Later requests fail in the same
  /// way.
  package func close() async {
    await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
      loop.onLoopNow {
        self.closeNow()
        continuation.resume()
      }
    }
  }

  private func closeNow() {
    guard !isClosed else { return }
    isClosed = true
    for easy in running.values {
      if let transfer = easy.transfer { end(transfer, with: .failure(.canceled)) }
    }
    multi?.close()
    multi?.freeShare()
    multi = nil
  }

  private func start(_ transfer: CurlTransfer) {
    do throws(CurlError) {
      guard !isClosed, !transfer.isCanceled else { throw .canceled }
      let multi = try openMulti()
      let easy = try EasyHandle(share: multi.share, sockets: multi.sockets, options: options)
      if !transfer.offersHTTP2, !http2Servers.isEmpty, let url = CurlURL(transfer.request.url) {
        transfer.offersHTTP2 = http2Servers[url.server].map { $0 > .now } ?? false
      }
      try easy.prepare(transfer.request, offersHTTP2: transfer.offersHTTP2)
      easy.transfer = transfer
      transfer.state = .running(easy)
      running[easy.raw] = easy
      try multi.add(easy)
    } catch {
      if case .running(let easy) = transfer.state { running[easy.raw] = nil }
      finish(transfer, .failure(error))
    }
  }

  private func openMulti() throws(CurlError) -> MultiHandle {
    if let multi { return multi }
    let opened = try MultiHandle(loop: loop, idleConnections: options.idleConnections) { [weak self] easy, result in
      self?.didFinish(easy, result: result)
    }
    multi = opened
    return opened
  }

  /// libcurl has finished with a handle, which is no longer in the multi handle.
  private func didFinish(_ raw: UnsafeMutableRawPointer, result: CURLcode) {
    guard let easy = running.removeValue(forKey: raw), let transfer = easy.transfer else { return }
    let outcome: Result<Int, CurlError> =
      result == CURLE_OK ? .success(easy.newConnections) : .failure(transfer.error(result: result, of: easy))
    let usedHTTP2 = transfer.offersHTTP2 && easy.usedHTTP2
    easy.transfer = nil
    if usedHTTP2 { remember(transfer) }
    if case .failure(let error) = outcome, error.code == .tlsFailed, !transfer.offersHTTP2 {
      // The handshake may have failed because there was no common protocol: try once more and also offer HTTP/2.
      transfer.offersHTTP2 = true
      if transfer.rewind() { return start(transfer) }
    }
    finish(transfer, outcome)
  }

  /// Remembers a server that refused HTTP/1.1, so that later requests offer HTTP/2 at once.
  private func remember(_ transfer: CurlTransfer) {
    guard let url = CurlURL(transfer.request.url), http2Servers[url.server].map({ $0 <= .now }) ?? true else { return }
    if http2Servers.count == 1000 { http2Servers.removeAll() }
    http2Servers[url.server] = .now + Self.belief
  }

  private func cancel(_ transfer: CurlTransfer) {
    transfer.isCanceled = true
    end(transfer, with: .failure(.canceled))
  }

  /// Takes a running transfer out of libcurl, which closes its connection.
  private func end(_ transfer: CurlTransfer, with outcome: Result<Int, CurlError>) {
    guard case .running(let easy) = transfer.state else { return }
    multi?.remove(easy)
    running[easy.raw] = nil
    easy.transfer = nil
    finish(transfer, outcome)
  }

  private func finish(_ transfer: CurlTransfer, _ outcome: Result<Int, CurlError>) {
    transfer.state = .finished
    let completion = transfer.completion
    transfer.completion = nil
    completion?(outcome)
  }

  func resume(_ transfer: CurlTransfer) {
    loop.execute {
      guard case .running(let easy) = transfer.state else { return }
      guard let result = self.multi?.resume(easy), result != CURLE_OK else { return }
      self.end(transfer, with: .failure(transfer.error(result: result, of: easy)))
    }
  }
}
