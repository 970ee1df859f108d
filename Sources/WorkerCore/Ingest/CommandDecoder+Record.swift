import ReelhaulKafka
import ReelhaulMessages
import TaskCore

extension CommandDecoder {
  /// The command of a record. If it has no id, the id is derived from the record's position.
  static func decode(_ record: KafkaRecord) throws(Rejection) -> Command {
    try decode(
      record.value, headers: record.headers.map { ($0.name, $0.value) },
      origin: MessageOrigin(
        topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp ?? -1))
  }
}
