import ReelhaulCurl
import ReelhaulSystem

/// Keeps everything that a transfer delivers. `decide` may refuse or pause.
// @unchecked: touched on the client's loop, and by the test after `perform` has returned.
final class RecordingHandler: CurlHandler, @unchecked Sendable {
  enum Event {
    case head(CurlHead)
    case body(Int)
  }

  private(set) var head: CurlHead?
  private(set) var body: [UInt8] = []
  private(set) var transfer: CurlTransfer?
  private let decide: @Sendable (Event, CurlTransfer) -> CurlVerdict

  init(_ decide: @escaping @Sendable (Event, CurlTransfer) -> CurlVerdict = { _, _ in .continue }) {
    self.decide = decide
  }

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    self.head = head
    self.transfer = transfer
    return decide(.head(head), transfer)
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    let verdict = decide(.body(body.count), transfer)
    if case .continue = verdict { self.body += body }
    return verdict
  }
}
