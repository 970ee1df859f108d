import ReelhaulCodec
import ReelhaulDigest

/// Signs a web hook, as the specification Standard Webhooks 1.0 says: `v1,` and the Base64 of the HMAC-SHA256 of
/// `id.timestamp.body`.
package enum HookSignature {
  /// The bytes of a secret: those behind `whsec_` in Base64, or else those of the text. Nil if there are none.
  package static func key(_ secret: String) -> [UInt8]? {
    guard secret.hasPrefix("whsec_") else { return secret.isEmpty ? nil : Array(secret.utf8) }
    let text = secret.dropFirst(6)
    let digits = text.prefix { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
    guard text.dropFirst(digits.count).allSatisfy({ $0 == "=" }), let key = Base64URL.decode(String(digits)) else {
      return nil
    }
    return key.isEmpty ? nil : key
  }

  package static func of(_ body: [UInt8], id: String, timestamp: Int64, key: [UInt8]) -> String {
    "v1," + Base64.encode(HMAC.sha256(key: key, Array("\(id).\(timestamp).".utf8) + body))
  }
}
