/// What becomes of a transfer after a callback.
package enum CurlVerdict: Sendable {
  case `continue`
  /// The bytes of this call are kept by libcurl and given again after ``CurlTransfer/resume()``. Not for heads.
  case pause
  /// Ends the transfer with ``CurlError/Code/aborted`` and closes its connection.
  case abort
}

/// What receives a response, on the loop's thread, within libcurl's callbacks: it must neither block nor start,
/// resume or end a transfer there.
package protocol CurlHandler: AnyObject, Sendable {
  /// The final response's head is complete; informational (1xx) ones are left out. Before any body byte.
  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict
  /// Body bytes, valid during the call alone; at most 16 KiB.
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict
}
