/// Hides in a text what looks like a secret: it is stored, published and shown.
///
/// This is a safety net for errors of libraries, whose texts nobody chose; a handler should not put secrets there.
enum SecretMask {
  private static let mask = "•••"

  /// The text in at most `limit` characters.
  static func masked(_ text: String, limit: Int) -> String {
    // The patterns read no more than can be shown, with room for what they shorten.
    var text = String(text.prefix(4 * limit))
    // https://user:password@host
    text.replace(#/(?<scheme>[A-Za-z][A-Za-z0-9+.\-]*:\/\/)[^\s\/?#"'<>@]+@/#) { "\($0.scheme)\(mask)@" }
    // ?name=value&name=value: signatures are values; names are kept.
    text.replace(#/(?<name>[?&][^\s=&#"'<>]+=)[^\s&#"'<>]+/#) { "\($0.name)\(mask)" }
    // Authorization: Bearer value
    text.replace(#/(?i)\b(?<scheme>bearer|basic|digest|negotiate)\s+[A-Za-z0-9._~+\/=\-]{6,}/#) {
      "\($0.scheme) \(mask)"
    }
    // password=value, "secret": "value", api_key: value
    text.replace(
      #/(?i)(?<name>\b[\w\-]*(?:password|passwd|passphrase|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|signature|credential|cookie|authorization)[\w\-]*["']?\s*[=:]\s*["']?)(?!bearer |basic |digest |negotiate )[^\s"',;&]+/#
    ) { "\($0.name)\(mask)" }
    // Access keys of AWS; what begins like a JSON web token.
    text.replace(#/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/#) { _ in mask }
    text.replace(#/\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+/#) { _ in mask }
    guard text.count > limit else { return text }
    return text.prefix(limit - 1) + "…"
  }
}
