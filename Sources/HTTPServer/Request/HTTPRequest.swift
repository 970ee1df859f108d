/// A request with its whole body.
package struct HTTPRequest: Sendable {
  /// In upper case, such as `GET`.
  package var method: String
  /// Path and query, as they were sent.
  package var target: String
  package var headers: HTTPFields
  package var body: [UInt8]
  /// The address of the client, or of the proxy in front of it; without port.
  package var peer = ""

  package init(method: String = "GET", target: String, headers: HTTPFields = [:], body: [UInt8] = []) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
  }

  /// The target before its query.
  package var path: Substring { target.prefix { $0 != "?" } }

  /// The fields of the query, decoded, in their order. A name without `=` has an empty value.
  ///
  /// Throws ``HTTPError`` if the query is not encoded correctly.
  package var query: [(name: String, value: String)] {
    get throws(HTTPError) {
      var fields: [(name: String, value: String)] = []
      for pair in target.dropFirst(path.count + 1).split(separator: "&") {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = PercentDecoding.decode(parts[0], isQuery: true),
          let value = PercentDecoding.decode(parts.count > 1 ? parts[1] : "", isQuery: true)
        else { throw HTTPError(400, "the query is not encoded correctly") }
        fields.append((name, value))
      }
      return fields
    }
  }

  /// The segments of the path, decoded after it was split; nil if one is not encoded correctly, or is `.` or `..`.
  package var segments: [String]? {
    var segments: [String] = []
    for part in path.split(separator: "/") {
      guard let text = PercentDecoding.decode(part, isQuery: false), text != ".", text != ".." else { return nil }
      segments.append(text)
    }
    return segments
  }
}

/// Header fields: their names are compared without regard to case.
package struct HTTPFields: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  package struct Field: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  package private(set) var fields: [Field] = []

  package init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0, value: $1) }
  }

  /// The first value; setting it replaces all.
  package subscript(name: String) -> String? {
    get { fields.first { Self.isSame($0.name, name) }?.value }
    set {
      fields.removeAll { Self.isSame($0.name, name) }
      if let newValue { fields.append(Field(name: name, value: newValue)) }
    }
  }

  package func all(_ name: String) -> [String] {
    fields.filter { Self.isSame($0.name, name) }.map(\.value)
  }

  package mutating func append(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value))
  }

  private static func isSame(_ a: String, _ b: String) -> Bool {
    a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).allSatisfy { ascii($0) == ascii($1) }
  }

  private static func ascii(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
  }
}

/// A request that is refused for what it is as a request.
package struct HTTPError: Error, Hashable, Sendable {
  package var status: Int
  package var message: String
  /// A word for programs, if the status does not say it all.
  package var code: String?

  /// The code of an error of the parser: the method is one that no path has.
  package static let unknownMethod = "unknown_method"

  package init(_ status: Int, _ message: String, code: String? = nil) {
    self.status = status
    self.message = message
    self.code = code
  }
}

/// RFC 3986, 2.1; strict.
enum PercentDecoding {
  /// Nil for a wrong escape, NUL, and bytes that are not UTF-8. In a path, an escaped slash is refused too.
  static func decode(_ text: some StringProtocol, isQuery: Bool) -> String? {
    var bytes: [UInt8] = []
    var input = text.utf8.makeIterator()
    while let byte = input.next() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = input.next().flatMap(digit), let low = input.next().flatMap(digit) else { return nil }
        let value = high << 4 | low
        guard value != 0, isQuery || value != UInt8(ascii: "/") else { return nil }
        bytes.append(value)
      case UInt8(ascii: "+") where isQuery: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
