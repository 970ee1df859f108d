/// The little XML of S3: elements with text, without attributes that matter.
enum StoreXML {
  static func escaped(_ text: String) -> String {
    var result = ""
    for character in text.unicodeScalars {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }

  static func unescaped(_ text: String) -> String {
    var result = text
    for (name, character) in [("lt", "<"), ("gt", ">"), ("quot", "\""), ("#34", "\""), ("apos", "'"), ("amp", "&")] {
      if result.contains("&\(name);") {
        result = result.split(separator: "&\(name);", omittingEmptySubsequences: false).joined(separator: character)
      }
    }
    return result
  }

  /// The raw contents of all elements `name`, in order.
  static func contents(of name: String, in text: String) -> [String] {
    text.split(separator: "<\(name)>", omittingEmptySubsequences: false).dropFirst().compactMap { rest in
      let sides = rest.split(separator: "</\(name)>", maxSplits: 1, omittingEmptySubsequences: false)
      return sides.count == 2 ? String(sides[0]) : nil
    }
  }

  /// The text of the first element `name`.
  static func text(of name: String, in text: String) -> String? {
    contents(of: name, in: text).first.map(unescaped)
  }

  static func element(_ name: String, _ text: String?) -> String {
    text.map { "<\(name)>\(escaped($0))</\(name)>" } ?? ""
  }

  /// An answer with a document, whose root holds `inner`.
  static func document(_ root: String, _ inner: String, status: Int = 200) -> OriginResponse {
    .text(
      status,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<\(root) xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(inner)</\(root)>",
      type: "application/xml")
  }

  static func error(_ status: Int, _ code: String, _ message: String, more: String = "") -> OriginResponse {
    .text(
      status,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\(element("Code", code))\(element("Message", message))\(more)</Error>",
      type: "application/xml")
  }
}

extension StoreChecksum {
  /// Its element in S3's XML.
  var element: String { "Checksum\(rawValue.uppercased())" }
}
