/// Writes the bodies of requests to S3.
struct S3XMLWriter {
  private(set) var bytes = Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".utf8)

  /// An element with the members that `body` writes.
  mutating func element(_ name: String, _ attributes: String = "", _ body: (inout S3XMLWriter) -> Void) {
    bytes += "<\(name)\(attributes)>".utf8
    body(&self)
    bytes += "</\(name)>".utf8
  }

  /// An element with a text; none if the text is nil.
  mutating func text(_ name: String, _ text: String?) {
    guard let text else { return }
    element(name) { $0.escaped(text) }
  }

  /// Control characters are references, because a reader would change them otherwise: a carriage return becomes a line
  /// feed.
  private mutating func escaped(_ text: String) {
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": bytes += "&amp;".utf8
      case "<": bytes += "&lt;".utf8
      case ">": bytes += "&gt;".utf8
      case "\"": bytes += "&quot;".utf8
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar.value == 0x2028:
        bytes += "&#\(scalar.value);".utf8
      default: bytes += String(scalar).utf8
      }
    }
  }

  static let namespace = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
}
