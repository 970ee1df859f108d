/// A record to write.
package struct KafkaMessage: Sendable {
  package var topic: String
  /// Records with the same key keep their order. Nil: any partition.
  package var key: [UInt8]?
  /// Nil is a tombstone.
  package var value: [UInt8]?
  package var headers: [KafkaHeader]
  /// Nil: the key decides.
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
