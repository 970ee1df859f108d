extension String {
  /// Without NUL, which PostgreSQL refuses: for texts for people, of which no part may hold up what they are about.
  package var storable: String {
    utf8.contains(0) ? String(decoding: utf8.map { $0 == 0 ? 0x20 : $0 }, as: UTF8.self) : self
  }

  /// As much of the beginning as has at most `bytes` bytes, because one character may have any number of them. A scalar
  /// that would be cut is left out.
  package func prefix(bytes: Int) -> String {
    var bytes = utf8.prefix(bytes)
    while bytes.endIndex.samePosition(in: unicodeScalars) == nil { bytes = bytes.dropLast() }
    return String(Substring(bytes))
  }
}
