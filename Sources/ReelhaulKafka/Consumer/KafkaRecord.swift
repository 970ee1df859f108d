/// A record as it was read.
package struct KafkaRecord: Sendable {
  package let topic: String
  package let partition: Int32
  package let offset: Int64
  /// Milliseconds since 1970, by the clock of the producer or the broker; nil if the record has no time.
  package let timestamp: Int64?
  package let key: [UInt8]?
  /// Nil is a tombstone.
  package let value: [UInt8]?
  package let headers: [KafkaHeader]

  package init(
    topic: String, partition: Int32, offset: Int64, timestamp: Int64? = nil, key: [UInt8]?, value: [UInt8]?,
    headers: [KafkaHeader] = []
  ) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
    self.key = key
    self.value = value
    self.headers = headers
  }

  var topicPartition: TopicPartition { TopicPartition(topic, partition) }

  /// The approximate size in memory, in bytes.
  var size: Int { 128 + (key?.count ?? 0) + (value?.count ?? 0) + headers.reduce(0) { $0 + $1.size } }
}

/// Records handed to a consumer's task, in order within each partition.
package struct KafkaBatch: Sendable {
  /// How far a batch reads one partition.
  package struct Range: Hashable, Sendable {
    let partition: TopicPartition
    /// The offset to continue from: one past the last record's.
    var next: Int64
    /// The assignment it was read under.
    let epoch: Int
  }

  package let records: [KafkaRecord]
  package let ranges: [Range]
}
