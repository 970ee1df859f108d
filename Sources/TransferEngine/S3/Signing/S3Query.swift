/// The query of a request to S3: `["partNumber": "7", "uploadId": id]`. A name without a value, such as `uploads`, has the
/// empty value.
package struct S3Query: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// Names and values, not encoded.
  package private(set) var items: [Item] = []

  package struct Item: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  package mutating func append(_ name: String, _ value: String) {
    items.append(Item(name: name, value: value))
  }

  package var isEmpty: Bool { items.isEmpty }

  /// Encoded and sorted, as it is both sent and signed. The order is that of the encoded bytes.
  package var text: String {
    items.map { (S3Encoding.value($0.name), S3Encoding.value($0.value)) }
      .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }
}
