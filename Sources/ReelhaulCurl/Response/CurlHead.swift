/// A response's status and header fields.
package struct CurlHead: Hashable, Sendable {
  package struct Field: Hashable, Sendable {
    /// In lower case.
    package var name: String
    /// Without the white space around it.
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package var status: Int
  package var fields: [Field]

  package init(status: Int, fields: [Field] = []) {
    self.status = status
    self.fields = fields
  }

  /// Whether the end of the body can be told from the end of the connection or of its stream, which anything can bring
  /// about: libcurl takes one for the other, over TLS and HTTP/2, too.
  package var isDelimited: Bool {
    self["content-length"] != nil || self["transfer-encoding"]?.lowercased() == "chunked"
  }

  /// The first field of a lower-case name.
  package subscript(name: String) -> String? {
    fields.first { $0.name == name }?.value
  }

  /// Every field of a lower-case name.
  package func values(of name: String) -> [String] {
    fields.filter { $0.name == name }.map(\.value)
  }
}
