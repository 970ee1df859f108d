/// A list like `a,b,c`.
package enum CommaList {
  /// The items, at least one. Nil if an item is empty or has spaces around it, because this is a slip whose meaning is
  /// unknown.
  package static func parse(_ text: String) -> [String]? {
    let items = text.split(separator: ",", omittingEmptySubsequences: false)
    guard items.allSatisfy({ !$0.isEmpty && $0.first != " " && $0.last != " " }) else { return nil }
    return items.map(String.init)
  }
}
