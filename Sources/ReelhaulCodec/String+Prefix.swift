extension String {
  /// As much of the beginning as has at most `bytes` bytes, because one character may have any number of them. A scalar
  /// that would be cut is left out.
  package func prefix(bytes: Int) -> String {
    var bytes = utf8.prefix(bytes)
    while bytes.endIndex.samePosition(in: unicodeScalars) == nil { bytes = bytes.dropLast() }
    return String(Substring(bytes))
  }
}
