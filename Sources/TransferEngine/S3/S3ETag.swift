import ReelhaulCodec

/// Entity tags of S3.
package enum S3ETag {
  /// The tag without its quotes: documents and header fields of stores differ in them.
  package static func bare(_ tag: String) -> String {
    tag.utf8.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"") ? String(tag.dropFirst().dropLast()) : tag
  }

  /// Whether it looks like an MD5, of a whole object or of an object of parts. Any other one proves nothing about bytes.
  package static func looksLikeMD5(_ tag: String) -> Bool {
    let parts = bare(tag).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts[0].utf8.count == 32, parts[0].utf8.allSatisfy({ Hex.value(of: $0) != nil }) else {
      return false
    }
    return parts.count == 1 || parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) } && !parts[1].isEmpty
  }
}
