/// A record to be written.
package struct KafkaMessage: Sendable {
  package var topic: String
  /// Records of one key keep their order. `nil`: any partition.
  package var key: [UInt8]?
  /// `nil` is a tombstone.
  package var value: [UInt8]?
  package var headers: [KafkaHeader]
  /// `nil`: by the key.
  package var partition: Int32?

  package init(
    topic: String, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = [], partition: Int32? = nil
  ) {
    self.topic = topic
    self.key = key
    self.value = value
    self.headers = headers
    self.partition = partition
  }
}
