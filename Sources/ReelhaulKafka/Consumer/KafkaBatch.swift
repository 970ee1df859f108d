/// Records handed to a consumer's task, in order within each partition.
package struct KafkaBatch: Sendable {
  /// How far a batch reads one partition.
  package struct Range: Hashable, Sendable {
    let partition: TopicPartition
    /// The offset to go on from: one past the last record's.
    var next: Int64
    /// The assignment it was read under.
    let epoch: Int
  }

  package let records: [KafkaRecord]
  package let ranges: [Range]
}
