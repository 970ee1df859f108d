import ReelhaulKafka
import ReelhaulMessages

/// A record that could not be applied, as it goes to the `dead-letters` topic: key, value and headers as they
/// were received, and where it came from and why it is here in headers of their own.
package enum DeadLetter {
  /// What is kept of the value of a record that the topic does not take whole, in bytes; of its headers as much, or
  /// none. The record itself still lies where it came from.
  package static let excerpt = 64 << 10

  /// - Parameter cut: whether only an excerpt is sent of a record that is longer than one; `dead-letter-cut` then
  ///   says how many bytes its value had.
  package static func message(
    for record: CommandRecord, code: String, reason: String, topic: String, cut: Bool = false
  ) -> KafkaMessage {
    var message = KafkaMessage(
      topic: topic, key: record.key, value: record.value,
      headers: [
        KafkaHeader("dead-letter-topic", record.origin.topic),
        KafkaHeader("dead-letter-partition", String(record.origin.partition)),
        KafkaHeader("dead-letter-offset", String(record.origin.offset)),
        KafkaHeader("dead-letter-code", code),
        KafkaHeader("dead-letter-reason", reason),
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
}
