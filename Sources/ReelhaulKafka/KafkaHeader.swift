/// A header of a record, as bytes; names may repeat.
package struct KafkaHeader: Hashable, Sendable {
  package let name: String
  package let value: [UInt8]

  package init(_ name: String, _ value: [UInt8]) {
    self.name = name
    self.value = value
  }

  package init(_ name: String, _ value: String) {
    self.init(name, Array(value.utf8))
  }

  /// Bytes it takes, roughly.
  var size: Int { Self.overhead + name.utf8.count + value.count }

  static let overhead = 64
}
