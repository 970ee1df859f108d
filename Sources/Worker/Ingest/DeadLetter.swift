import Kafka

/// A record that could not be applied, as it goes to the `dead-letters` topic: key, value and headers as they
/// were received, and where it came from and why it is here in headers of their own.
package enum DeadLetter {
  package static func message(for record: KafkaRecord, code: String, reason: String, topic: String) -> KafkaMessage {
    KafkaMessage(
      topic: topic, key: record.key, value: record.value,
      headers: record.headers + [
        KafkaHeader("dead-letter-topic", record.topic),
        KafkaHeader("dead-letter-partition", String(record.partition)),
        KafkaHeader("dead-letter-offset", String(record.offset)),
        KafkaHeader("dead-letter-code", code),
        KafkaHeader("dead-letter-reason", reason),
      ])
  }
}
