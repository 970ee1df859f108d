/// What a client tells besides its results: for logs and metrics. Observers are called on the client's poll thread
/// and must return soon.
package enum KafkaNotice: Sendable {
  /// A line of librdkafka's log; `level` is syslog's (3 error … 7 debug), `facility` its short name.
  case log(level: Int, facility: String, text: String)
  /// Trouble that librdkafka handles by itself (a broker is away, it reconnects), or a fatal error.
  case error(KafkaError)
  /// librdkafka's statistics, one JSON object; only with `statistics.interval.ms`.
  case statistics(json: String)
  case assigned([TopicPartition])
  /// The group's offsets of these are gone: their topic was deleted. It is read from its beginning, once it is there.
  case restarted([TopicPartition])
  /// It had records and brought none, until it was fetched anew.
  case stalled(TopicPartition)
  /// What is done could not be committed; it is tried again.
  case uncommitted(KafkaError)
  /// Records of these were handed out and could not be committed in time: they come again, at the next owner.
  case repeated([TopicPartition])
  /// The topics that a reader expects and the cluster lacks, whenever they are others than before; none: all are there again.
  case missing([String])
  /// `lost`: the group had already given the partitions to others.
  case revoked([TopicPartition], lost: Bool)
  /// Records are missing: the next one expected was `expected`, the next one there is was `found`.
  case gap(TopicPartition, expected: Int64, found: Int64)
}

package typealias KafkaObserver = @Sendable (KafkaNotice) -> Void
