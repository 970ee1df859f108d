/// A request as it reached an ``OriginServer``.
package struct OriginRequest: Sendable {
  package var method: String
  /// Path and query, as they were sent.
  package var target: String
  /// Names in lower case, in the order sent.
  package var headers: [(name: String, value: String)]
  /// Counts the requests for this path, from 1.
  package var number = 0
  /// Counts the connections of the server, from 1.
  package var connection = 0
  /// The number of requests that the whole server is answering at this moment, including this one, without those whose
  /// client may have the last bytes already.
  package var inProgress = 0

  package var path: String {
    String(target.prefix { $0 != "?" })
  }

  package subscript(name: String) -> String? {
    headers.first { $0.name == name }?.value
  }

  /// The requested byte range. If `first` is nil, it is the last `last` bytes.
  package var range: (first: Int64?, last: Int64?)? {
    guard let value = self["range"], value.hasPrefix("bytes=") else { return nil }
    let bounds = value.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard bounds.count == 2 else { return nil }
    let (first, last) = (Int64(bounds[0]), Int64(bounds[1]))
    return first == nil && last == nil ? nil : (first, last)
  }

  /// Parses a whole head, with or without the empty line; nil if it is not one.
  init?(head: String) {
    // "\r\n" is one Character.
    var lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)
    guard !lines.isEmpty else { return nil }
    let words = lines.removeFirst().split(separator: " ")
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
    method = String(words[0])
    target = String(words[1])
    headers = lines.compactMap { line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      return (line[..<colon].lowercased(), String(value))
    }
  }
}
