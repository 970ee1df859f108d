/// Records for a consumer's task, in order within each partition.
package struct KafkaBatch: Sendable {
  /// The records of one partition that a batch contains.
  package struct Range: Hashable, Sendable {
    let partition: TopicPartition
    /// The offset to continue from: one past the last record.
    var next: Int64
    /// The assignment under which the records were read.
    let epoch: Int
  }

  package let records: [KafkaRecord]
  package let ranges: [Range]
}
