/// What happens to a transfer after a callback.
package enum CurlVerdict: Sendable {
  case `continue`
  /// libcurl keeps the bytes of this call and delivers them again after ``CurlTransfer/resume()``. Not allowed for
  /// heads.
  case pause
  /// Ends the transfer with ``CurlError/Code/aborted`` and closes its connection.
  case abort
}

/// Receives a response, on the loop's thread, within libcurl's callbacks. Its methods must not block, and must not
/// start, resume or end a transfer.
package protocol CurlHandler: AnyObject, Sendable {
  /// The head of the final response is complete. Called before any body byte. Informational (1xx) heads are not
  /// reported.
  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict
  /// Body bytes, at most 16 KiB. They are valid only during the call.
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict
}
