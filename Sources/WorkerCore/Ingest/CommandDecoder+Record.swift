import ReelhaulKafka
import ReelhaulMessages
import TaskCore

extension CommandDecoder {
  /// The command of a record, with an id derived from where the record lies where it brings none.
  static func decode(_ record: KafkaRecord) throws(Rejection) -> Command {
    try decode(
      record.value, headers: record.headers.map { ($0.name, $0.value) },
      origin: MessageOrigin(
        topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp ?? -1))
  }
}
