/// A response's status and header fields.
package struct CurlHead: Hashable, Sendable {
  package struct Field: Hashable, Sendable {
    /// The name, in lower case.
    package var name: String
    /// The value, without surrounding white space.
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

  /// Whether the head says where the body ends. Without this, only the end of the connection or of its stream marks
  /// the end, and libcurl cannot tell a complete body from a lost connection, also over TLS and HTTP/2.
  package var isDelimited: Bool {
    self["content-length"] != nil || self["transfer-encoding"]?.lowercased() == "chunked"
  }

  /// The value of the first field with this lower-case name.
  package subscript(name: String) -> String? {
    fields.first { $0.name == name }?.value
  }

  /// The values of all fields with this lower-case name.
  package func values(of name: String) -> [String] {
    fields.filter { $0.name == name }.map(\.value)
  }
}
