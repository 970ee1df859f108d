import CReelhaulKafka

/// The common parts of all producers.
extension KafkaHandle {
  static func producing(_ window: KafkaProducer.Window, linger milliseconds: Int) -> [String: String] {
    [
      "compression.type": "lz4",
      "linger.ms": String(milliseconds),
      "message.timeout.ms": "60000",
      "message.max.bytes": "2097152",
      "retry.backoff.ms": "50",
      // A missing topic must be created as planned by `migrate`, not by a producer that writes to it.
      "allow.auto.create.topics": "false",
      // The partitioner of the Java client, so that producers in all languages keep the order of a key.
      "partitioner": "murmur2_random",
      "queue.buffering.max.messages": String(max(window.messages, 1) * 2),
      "queue.buffering.max.kbytes": String(max(window.bytes >> 9, 1024)),
    ]
  }
}
