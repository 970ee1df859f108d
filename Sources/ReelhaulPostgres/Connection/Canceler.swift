import CReelhaulPostgres

/// Asks the server to cancel what a session is running.
// @unchecked: a PGcancel is a copy of the session's address and key that libpq only reads.
final class Canceler: @unchecked Sendable {
  private let cancel: OpaquePointer

  init(_ cancel: OpaquePointer) {
    self.cancel = cancel
  }

  deinit {
    PQfreeCancel(cancel)
  }

  /// Blocks until the server has taken the request.
  func send() {
    var message = [CChar](repeating: 0, count: 256)
    _ = PQcancel(cancel, &message, Int32(message.count))
  }
}
