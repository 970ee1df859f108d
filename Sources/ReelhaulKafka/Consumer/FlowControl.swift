import CReelhaulKafka

/// Whether partitions should be paused, for which reason, and which of them are.
struct FlowControl {
  /// The consumer's buffer is full, so everything is paused.
  var isFull = false
  /// The consumer's owner wants no more records for now.
  var isPaused = false
  private var applied: Set<TopicPartition> = []

  /// Pauses and resumes the partitions whose state is not the wanted one.
  mutating func apply(to assignment: @autoclosure () -> [TopicPartition], on handle: KafkaHandle) {
    guard isFull || isPaused || !applied.isEmpty else { return }
    let wanted = isFull || isPaused ? Set(assignment()) : []
    let toPause = wanted.subtracting(applied)
    let toResume = applied.subtracting(wanted)
    if !toPause.isEmpty { PartitionList(toPause).lend { _ = rd_kafka_pause_partitions(handle.raw, $0) } }
    if !toResume.isEmpty { PartitionList(toResume).lend { _ = rd_kafka_resume_partitions(handle.raw, $0) } }
    applied = wanted
  }

  /// Resumes partitions that leave, as they were when they came.
  mutating func release(_ partitions: [TopicPartition], on handle: KafkaHandle) {
    let toResume = applied.intersection(partitions)
    if !toResume.isEmpty { PartitionList(toResume).lend { _ = rd_kafka_resume_partitions(handle.raw, $0) } }
    applied.subtract(partitions)
  }
}
