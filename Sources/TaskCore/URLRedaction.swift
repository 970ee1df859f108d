/// Makes URLs fit for logs, events and documents.
public enum URLRedaction {
  /// `url` without what may be secret in it: userinfo is dropped, the values of the query are replaced by `***`, the
  /// fragment is dropped. Works on text that is no valid URL, too.
  public static func redact(_ url: String) -> String {
    guard url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "@") })
    else { return url }
    let withoutFragment = url.prefix { $0 != "#" }
    let parts = withoutFragment.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var text = dropUserinfo(parts[0])
    if parts.count == 2 {
      text += "?"
      text += parts[1].split(separator: "&", omittingEmptySubsequences: false).map { parameter in
        parameter.isEmpty ? "" : parameter.contains("=") ? "\(parameter.prefix { $0 != "=" })=***" : "***"
      }.joined(separator: "&")
    }
    return text
  }

  private static func dropUserinfo(_ url: Substring) -> String {
    guard let colon = url.firstIndex(of: ":"), url[colon...].hasPrefix("://") else { return String(url) }
    let authorityStart = url.index(colon, offsetBy: 3)
    let authority = url[authorityStart...].prefix { $0 != "/" }
    guard let at = authority.lastIndex(of: "@") else { return String(url) }
    return String(url[..<authorityStart]) + String(url[url.index(after: at)...])
  }
}
