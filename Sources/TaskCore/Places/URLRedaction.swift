/// Removes possible secrets from URLs, so that logs, events and documents may contain them.
public enum URLRedaction {
  /// Returns `url` without the parts that may be secret: removes the userinfo and the fragment, and replaces the values
  /// of the query by `***`. Replaces a parameter without a name and a value completely. Also works on text that is not
  /// a valid URL.
  public static func redact(_ url: String) -> String {
    guard url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "@") })
    else { return url }
    // Its only parameter is a version, which people need and which is no secret.
    if let object = try? S3URL(url) { return object.description }
    // Of scalars: a mark makes another character of a "?", and no other delimiter.
    let withoutFragment = url.unicodeScalars.prefix { $0 != "#" }
    let parts = withoutFragment.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let text = dropUserinfo(parts[0])
    return parts.count == 2 ? "\(text)?\(hideValues(of: parts[1]))" : text
  }

  private static func hideValues(of query: Substring.UnicodeScalarView) -> String {
    var (text, rest) = ("", query)
    while true {
      let parameter = rest.prefix { $0 != "&" && $0 != ";" }
      text += hideValue(of: parameter)
      rest = rest[parameter.endIndex...]
      guard let separator = rest.popFirst() else { return text }
      text.unicodeScalars.append(separator)
    }
  }

  /// A token may end in `=`, the padding of Base64. The text before such a `=` is not a name, and is hidden too.
  private static func hideValue(of parameter: Substring.UnicodeScalarView) -> String {
    guard !parameter.isEmpty else { return "" }
    let name = parameter.prefix { $0 != "=" }
    return parameter[name.endIndex...].contains { $0 != "=" } ? "\(String(name))=***" : "***"
  }

  private static func dropUserinfo(_ url: Substring.UnicodeScalarView) -> String {
    guard let colon = url.firstIndex(of: ":"), url[colon...].starts(with: "://".unicodeScalars) else {
      return String(url)
    }
    let authorityStart = url.index(colon, offsetBy: 3)
    let authority = url[authorityStart...].prefix { $0 != "/" }
    guard let at = authority.lastIndex(of: "@") else { return String(url) }
    return String(url[..<authorityStart]) + String(url[url.index(after: at)...])
  }
}
