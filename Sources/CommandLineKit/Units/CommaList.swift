/// `a,b,c` as people write it.
package enum CommaList {
  /// The items, at least one of them. Nil where one is empty or has spaces around it: a slip, and nothing to guess about.
  package static func parse(_ text: String) -> [String]? {
    let items = text.split(separator: ",", omittingEmptySubsequences: false)
    guard items.allSatisfy({ !$0.isEmpty && $0.first != " " && $0.last != " " }) else { return nil }
    return items.map(String.init)
  }
}
