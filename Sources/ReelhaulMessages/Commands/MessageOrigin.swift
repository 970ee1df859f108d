import ReelhaulCodec
import TaskCore

/// The position of a message in Kafka. A command without an id gets an id from it.
package struct MessageOrigin: Hashable, Sendable {
  package var topic: String
  package var partition: Int32
  package var offset: Int64
  /// The record's time in milliseconds since 1970, which never changes; negative if it has none.
  package var timestamp: Int64

  package init(topic: String, partition: Int32, offset: Int64, timestamp: Int64) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
  }

  /// An id that is the same for every delivery of the record, and different for every other record: a version 8 UUID
  /// of the time (48 bits, so that it sorts like a version 7), the topic's hash (12), the partition (20) and the
  /// offset (42).
  ///
  /// The time is included because a topic that is created again counts its offsets from 0.
  package var id: UniqueID {
    let hash = FNV1a(topic.utf8).value
    let milliseconds = UInt64(max(0, timestamp)) & 0xFFFF_FFFF_FFFF
    let place = UInt64(truncatingIfNeeded: partition) & 0xFFFFF
    return UniqueID(
      high: milliseconds << 16 | 0x8000 | hash >> 52,
      low: 0x8000_0000_0000_0000 | place << 42 | UInt64(truncatingIfNeeded: offset) & 0x3FF_FFFF_FFFF)
  }
}
