/// Records handed to a consumer's task, in order within each partition.
package struct KafkaBatch: Sendable {
  /// The offsets of one partition in a batch.
  struct Range: Hashable, Sendable {
    let partition: TopicPartition
    let first: Int64
    /// The offset to go on from: one past the last record's.
    var next: Int64
    /// The assignment it was read under.
    let epoch: Int
  }

  package let records: [KafkaRecord]
  let ranges: [Range]
}
