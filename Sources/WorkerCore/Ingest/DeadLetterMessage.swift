import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages

/// A record that could not be applied, for the `dead-letters` topic: its key, value and headers unchanged, with its
/// origin and the reason in additional headers.
package enum DeadLetterMessage {
  /// The bytes that are kept of a value that is too large for the topic. Of its headers the same amount is kept, or
  /// none. The complete record is still in its own topic.
  package static let excerpt = 64 << 10
  /// The most bytes of a reason, which may quote the command.
  private static let reasonLimit = 1 << 10

  /// - Parameter cut: whether to send only an excerpt of a record that is longer than one. Then `dead-letter-cut` has
  ///   the number of bytes of the whole value.
  package static func message(
    for record: CommandRecord, code: String, reason: String, topic: String, cut: Bool = false
  ) -> KafkaMessage {
    var message = KafkaMessage(
      topic: topic, key: record.key, value: record.value,
      headers: [
        KafkaHeader("dead-letter-topic", record.origin.topic),
        KafkaHeader("dead-letter-partition", String(record.origin.partition)),
        KafkaHeader("dead-letter-offset", String(record.origin.offset)),
        KafkaHeader("dead-letter-timestamp", String(record.origin.timestamp)),
        KafkaHeader("dead-letter-code", code),
        KafkaHeader("dead-letter-reason", shortened(reason)),
      ])
    let own = record.headers.map { KafkaHeader($0.0, $0.1) }
    let headers = own.reduce(0) { $0 + $1.name.utf8.count + $1.value.count }
    let sizes = (key: record.key?.count ?? 0, value: record.value?.count ?? 0, headers: headers)
    guard cut, sizes.key + sizes.value + sizes.headers > excerpt else {
      message.headers.insert(contentsOf: own, at: 0)
      return message
    }
    message.headers.append(KafkaHeader("dead-letter-cut", String(sizes.value)))
    message.value = record.value.map { Array($0.prefix(excerpt)) }
    if sizes.key > excerpt { message.key = nil }
    if sizes.headers <= excerpt { message.headers.insert(contentsOf: own, at: 0) }
    return message
  }

  private static func shortened(_ reason: String) -> String {
    guard reason.utf8.count > reasonLimit else { return reason }
    return reason.prefix(bytes: reasonLimit) + "…"
  }
}
