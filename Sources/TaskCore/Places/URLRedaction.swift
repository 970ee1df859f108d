/// Makes URLs fit for logs, events and documents.
public enum URLRedaction {
  /// `url` without what may be secret in it: userinfo is dropped, the values of the query are replaced by `***`, the
  /// fragment is dropped. What has no name and value is hidden wholly. Works on text that is no valid URL, too.
  public static func redact(_ url: String) -> String {
    guard url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "@") })
    else { return url }
    let withoutFragment = url.prefix { $0 != "#" }
    let parts = withoutFragment.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let text = dropUserinfo(parts[0])
    return parts.count == 2 ? "\(text)?\(hideValues(of: parts[1]))" : text
  }

  private static func hideValues(of query: Substring) -> String {
    var (text, rest) = ("", query)
    while true {
      let parameter = rest.prefix { $0 != "&" && $0 != ";" }
      text += hideValue(of: parameter)
      rest = rest[parameter.endIndex...]
      guard let separator = rest.popFirst() else { return text }
      text.append(separator)
    }
  }

  /// A token may end in `=`, the padding of Base64: no name stands before that.
  private static func hideValue(of parameter: Substring) -> String {
    guard !parameter.isEmpty else { return "" }
    let name = parameter.prefix { $0 != "=" }
    return parameter[name.endIndex...].contains { $0 != "=" } ? "\(name)=***" : "***"
  }

  private static func dropUserinfo(_ url: Substring) -> String {
    guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else { return String(url) }
    let authorityStart = url.index(colon, offsetBy: 3)
    let authority = url[authorityStart...].prefix { $0 != "/" }
    guard let at = authority.lastIndex(of: "@") else { return String(url) }
    return String(url[..<authorityStart]) + String(url[url.index(after: at)...])
  }
}
