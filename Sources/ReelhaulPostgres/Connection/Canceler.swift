import CReelhaulPostgres

/// Asks the server to cancel the running statement of a session.
// @unchecked: a PGcancel is a copy of the session's address and key, and libpq only reads it.
final class Canceler: @unchecked Sendable {
  private let cancel: OpaquePointer

  init(_ cancel: OpaquePointer) {
    self.cancel = cancel
  }

  deinit {
    PQfreeCancel(cancel)
  }

  /// Blocks until the server has accepted the request.
  func send() {
    var message = [CChar](repeating: 0, count: 256)
    _ = PQcancel(cancel, &message, Int32(message.count))
  }
}
