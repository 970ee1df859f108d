/// The body of a request, which libcurl takes on the loop's thread within its callbacks: nothing here may block, or start,
/// resume or end a transfer.
package protocol CurlBody: AnyObject, Sendable {
  /// The exact length in bytes. It becomes the request's `Content-Length`.
  var size: Int64 { get }
  /// Writes the next bytes into `buffer`, which is never empty.
  func read(into buffer: UnsafeMutableRawBufferPointer, of transfer: CurlTransfer) -> CurlSupply
  /// The body is sent again from its start, because a connection that was kept turned out to be dead. False if that is
  /// not possible.
  func rewind() -> Bool
}

/// What a ``CurlBody`` has.
package enum CurlSupply: Sendable {
  /// So many bytes were written; 0 only if the body is empty.
  case bytes(Int)
  /// Nothing yet: it is asked again after ``CurlTransfer/resume()``.
  case pause
  /// Ends the transfer with ``CurlError/Code/aborted`` and closes its connection.
  case abort
}

/// A body in memory.
// @unchecked: touched only on the client's loop.
package final class CurlBytes: CurlBody, @unchecked Sendable {
  private let bytes: [UInt8]
  private var sent = 0

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  package var size: Int64 { Int64(bytes.count) }

  package func read(into buffer: UnsafeMutableRawBufferPointer, of transfer: CurlTransfer) -> CurlSupply {
    let count = min(buffer.count, bytes.count - sent)
    bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[sent..<sent + count])) }
    sent += count
    return .bytes(count)
  }

  package func rewind() -> Bool {
    sent = 0
    return true
  }
}
