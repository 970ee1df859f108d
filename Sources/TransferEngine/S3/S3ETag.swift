import ReelhaulCodec

/// Entity tags of S3.
package enum S3ETag {
  /// The tag without its quotes: documents and header fields of stores differ in them.
  package static func bare(_ tag: String) -> String {
    tag.utf8.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"") ? String(tag.dropFirst().dropLast()) : tag
  }

  /// The MD5 that the tag is, in lower case; nil for any other tag, such as that of an object of parts, which proves
  /// nothing about bytes.
  static func md5(_ tag: String) -> String? {
    let digits = bare(tag).lowercased()
    return digits.utf8.count == 32 && digits.utf8.allSatisfy { Hex.value(of: $0) != nil } ? digits : nil
  }
}
