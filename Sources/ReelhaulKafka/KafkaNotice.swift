/// Notices of a client besides its results, for logs and metrics. Observers are called on the client's poll thread and
/// must return soon.
package enum KafkaNotice: Sendable {
  /// A line of librdkafka's log. `level` is syslog's (3 error … 7 debug), `facility` is a short name.
  case log(level: Int, facility: String, text: String)
  /// A problem that librdkafka handles by itself (a broker is away, it reconnects), or a fatal error.
  case error(KafkaError)
  /// The cluster answered a reader, which asks about once a second.
  case answered
  /// The cluster has not answered a reader for some seconds. It tells so once, until it is ``answered``.
  case unanswered(KafkaError)
  case assigned([TopicPartition])
  /// The group's offsets of these partitions are gone, because their topic was deleted. The new topic is read from its
  /// beginning.
  case restarted([TopicPartition])
  /// This partition had records and delivered none until it was fetched again.
  case stalled(TopicPartition)
  /// Offsets of finished records could not be committed. The commit is repeated.
  case uncommitted(KafkaError)
  /// Records of these partitions were handed out and could not be committed in time. They come again at the next
  /// owner.
  case repeated([TopicPartition])
  /// The topics that a reader expects and the cluster lacks, whenever this set changes. Empty: all topics exist again.
  case missing([String])
  /// `lost`: the group had already given the partitions to other members.
  case revoked([TopicPartition], lost: Bool)
  /// Records are missing: the next record should have been `expected`, but it is `found`.
  case gap(TopicPartition, expected: Int64, found: Int64)
  /// The group has no offsets of these partitions, and their first records are gone: they were dropped, or others have
  /// read them.
  case begun([TopicPartition])
}

package typealias KafkaObserver = @Sendable (KafkaNotice) -> Void
