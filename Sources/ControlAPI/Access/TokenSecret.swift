import ReelhaulCodec
import ReelhaulDigest

/// The secret of a token or a session: `rhl_` and 32 random bytes. It is shown once; only its SHA-256 is kept.
package struct TokenSecret: Hashable, Sendable {
  private static let prefix = "rhl_"
  package let text: String
  package let hash: [UInt8]

  /// A new one.
  package init() {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<4).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) }
    text = Self.prefix + Base64URL.encode(bytes)
    hash = digest(.sha256, of: Array(text.utf8))
  }

  /// One that was sent; nil if it has not the form of one.
  package init?(_ text: String) {
    guard text.hasPrefix(Self.prefix), text.utf8.count == Self.prefix.utf8.count + 43,
      text.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else { return nil }
    self.text = text
    hash = digest(.sha256, of: Array(text.utf8))
  }
}
