/// Hides parts of a text that look like secrets, because the text is stored, published and shown.
///
/// This is a safety net for the texts of errors from libraries. A handler should not put secrets into errors.
enum SecretMask {
  private static let mask = "•••"

  /// The text in at most `limit` characters.
  static func masked(_ text: String, limit: Int) -> String {
    // The patterns read only four times the limit, because no more can be shown even after they shorten the text.
    var text = String(text.prefix(4 * limit))
    // https://user:password@host
    text.replace(#/(?<scheme>[A-Za-z][A-Za-z0-9+.\-]*:\/\/)[^\s\/?#"'<>@]+@/#) { "\($0.scheme)\(mask)@" }
    // ?name=value&name=value: hides values, which may be signatures, and keeps names.
    text.replace(#/(?<name>[?&][^\s=&#"'<>]+=)[^\s&#"'<>]+/#) { "\($0.name)\(mask)" }
    // Authorization: Bearer value
    text.replace(#/(?i)\b(?<scheme>bearer|basic|digest|negotiate)\s+[A-Za-z0-9._~+\/=\-]{6,}/#) {
      "\($0.scheme) \(mask)"
    }
    // password=value, "secret": "value", api_key: value
    text.replace(
      #/(?i)(?<name>\b[\w\-]*(?:password|passwd|passphrase|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|signature|credential|cookie|authorization)[\w\-]*["']?\s*[=:]\s*["']?)(?!bearer |basic |digest |negotiate )[^\s"',;&]+/#
    ) { "\($0.name)\(mask)" }
    // Access keys of AWS, and texts that begin like a JSON web token.
    text.replace(#/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/#) { _ in mask }
    text.replace(#/\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+/#) { _ in mask }
    guard text.count > limit else { return text }
    return text.prefix(limit - 1) + "…"
  }
}
