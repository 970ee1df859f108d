/// The options of all transfers of a ``CurlClient``.
package struct CurlOptions: Sendable {
  /// Whether connecting to a `sockaddr` is allowed. Called on the loop for every new connection.
  package typealias AddressPredicate = @Sendable (UnsafeRawBufferPointer) -> Bool

  package var permits: AddressPredicate
  package var userAgent: String
  /// Bytes per transfer.
  package var receiveBuffer: Int
  /// Idle connections kept for reuse.
  package var idleConnections: Int
  /// A PEM file that replaces the system's certificates.
  package var caFile: String?

  package init(
    permits: @escaping AddressPredicate, userAgent: String = "Reelhaul", receiveBuffer: Int = 128 * 1024,
    idleConnections: Int = 64, caFile: String? = nil
  ) {
    self.permits = permits
    self.userAgent = userAgent
    self.receiveBuffer = receiveBuffer
    self.idleConnections = idleConnections
    self.caFile = caFile
  }
}
