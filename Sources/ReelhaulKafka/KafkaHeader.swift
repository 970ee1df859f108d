/// A header of a record, as bytes. Names may repeat.
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

  /// The approximate size in memory, in bytes.
  var size: Int { Self.overhead + name.utf8.count + value.count }

  static let overhead = 64
}
