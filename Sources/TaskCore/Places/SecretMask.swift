/// Hides parts of a text that look like secrets, because the text is stored, published and shown.
///
/// This is a safety net for the texts of errors from libraries. A handler should not put secrets into errors.
package enum SecretMask {
  /// The text in at most `limit` characters, with `mark` for what looks like a secret.
  ///
  /// Every pattern begins with fixed characters or is bounded, so that the time grows with the length of the text and not
  /// with its square.
  package static func masked(_ text: String, limit: Int, mark: String = "•••") -> String {
    // The patterns read only four times the limit, because no more can be shown even after they shorten the text.
    var text = String(text.prefix(4 * limit))
    // https://user:password@host
    text.replace(#/:\/\/[^\s\/?#"'<>]+@/#) { _ in "://\(mark)@" }
    // ?name=value&name=value: hides values, which may be signatures, and keeps names.
    text.replace(#/(?<name>[?&][^\s=&?#"'<>]+=)[^\s&#"'<>]+/#) { "\($0.name)\(mark)" }
    // Authorization: Bearer value
    text.replace(#/(?i)\b(?<scheme>bearer|basic|digest|negotiate)\s+[A-Za-z0-9._~+\/=\-]{6,}/#) {
      "\($0.scheme) \(mark)"
    }
    // Cookie: name=value; name=value
    text.replace(#/(?i)\b(?<name>cookie\s*:\s*)[^"'\r\n]+/#) { "\($0.name)\(mark)" }
    // password=value, "secret": "some words", api_key: value, Authorization: Token value
    text.replace(
      #/(?i)(?<name>(?:password|passwd|passphrase|secret|token|api[_\-]?key|access[_\-]?key|private[_\-]?key|signature|credential|cookie|authorization)[\w\-]{0,40}["']?\s*[=:]\s*)(?<scheme>(?:token|apikey|key)\s+)?(?:(?<double>")(?!bearer |basic |digest |negotiate )[^"\r\n]+|(?<single>')(?!bearer |basic |digest |negotiate )[^'\r\n]+|(?!bearer |basic |digest |negotiate )[^\s"',;&]+)/#
    ) { "\($0.name)\($0.scheme ?? "")\($0.double ?? $0.single ?? "")\(mark)" }
    // Access keys of AWS, and texts that begin like a JSON web token.
    text.replace(#/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/#) { _ in mark }
    text.replace(#/\beyJ[A-Za-z0-9_\-.]{8,}/#) { _ in mark }
    guard text.count > limit else { return text }
    return text.prefix(limit - 1) + "…"
  }
}
