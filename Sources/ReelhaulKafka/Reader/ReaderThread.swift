import CReelhaulKafka
import ReelhaulSystem

/// The thread behind a ``KafkaReader``. While no task waits and its buffer is full, it does not poll, and librdkafka
/// stops fetching. It has no group, so no coordinator expects it to poll.
// @unchecked: `stopper`, `batches` and what has a lock are for all threads; only the thread uses everything else.
final class ReaderThread: @unchecked Sendable {
  let batches = Rendezvous<KafkaReader.Reading>()
  let beginnings = Lock<[TopicPartition: KafkaReader.Beginning]>([:])
  /// Of the reader's topics that there are, as the cluster last said.
  let partitionCounts = Lock<[String: Int]>([:])
  private let handle: KafkaHandle
  private let topics: [String]
  private let only: Set<TopicPartition>?
  /// The topics that should exist.
  private let expected: Set<String>
  /// Those that were missing at the last look.
  private var missing: Set<String> = []
  /// Those of which the cluster could not say whether they exist.
  private var unsure: Set<String> = []
  /// The expected topics that are not read.
  private let others: [String]
  /// The index of the one that the last look asked for.
  private var askedOther = 0
  private let start: KafkaReader.Start
  private let limit: (records: Int, bytes: Int)
  private let milliseconds: Int32
  private let stopper: StoppableHandle

  private var positions: [TopicPartition: ReadPosition] = [:]
  private var copier = RecordCopier()
  private var collected = KafkaReader.Reading()
  private var collectedBytes = 0
  private var nextLook = BootInstant.now
  private var silence = Silence()

  /// How often the thread looks for new partitions, and how many milliseconds a look may take; a stop may wait that
  /// long. If a topic is deleted, created again and refilled with as many records between two looks, this is not
  /// noticed.
  private static let lookInterval = Duration.seconds(1)
  private static let lookPatience: Int32 = 1000

  init(
    _ handle: KafkaHandle, topics: [String], only: Set<TopicPartition>?, expected: [String], start: KafkaReader.Start,
    records: Int, bytes: Int, timeout: Duration
  ) {
    self.handle = handle
    stopper = StoppableHandle(handle)
    self.topics = topics
    self.only = only
    self.expected = Set(expected)
    others = self.expected.subtracting(topics).sorted()
    self.start = start
    limit = (records, bytes)
    milliseconds = max(1, (BootInstant.now + timeout).millisecondsLeft)
  }

  // MARK: From any thread

  /// Starts the thread, and waits until every position is known.
  func open() async -> Result<PollThread, KafkaError> {
    let thread = Lock<PollThread?>(nil)
    let result: Result<Void, KafkaError> = await withCheckedContinuation { continuation in
      let started = PollThread(name: "kafka-reader") { self.run { continuation.resume(returning: $0) } }
      thread.withLock { $0 = started }
    }
    guard let thread = thread.withLock({ $0 }) else { return .failure(.closed("the reader")) }
    switch result {
    case .success: return .success(thread)
    case .failure(let error):
      await thread.ended()
      return .failure(error)
    }
  }

  func wake() {
    stopper.wake()
  }

  func stop() {
    stopper.stop()
  }

  // MARK: The thread

  private func run(_ opened: (Result<Void, KafkaError>) -> Void) {
    var handles = TopicHandles(client: handle.raw)
    do throws(KafkaError) {
      try look(&handles, from: start, milliseconds: milliseconds)
      opened(.success(()))
      while !stopper.isStopping { turn(&handles) }
    } catch {
      stopper.stop()
      handle.drain()
      opened(.failure(error.because(of: handle.trouble)))
    }
    batches.finish(.success(()))
    for partition in positions.keys {
      if let topic = handles.handle(partition.topic) { rd_kafka_consume_stop(topic, partition.partition) }
    }
    _ = consume handles
    handle.destroy()
  }

  private func turn(_ handles: inout TopicHandles) {
    if nextLook.hasPassed {
      do throws(KafkaError) {
        try look(&handles, from: .beginning, milliseconds: Self.lookPatience)
        handle.notice(.answered)
      } catch {
        handle.notice(.error(error))
        if silence.failed() { handle.notice(.unanswered(error.because(of: handle.trouble))) }
      }
    }
    if isFull, !batches.isAwaited {
      handle.rest(milliseconds: 1000)
    } else {
      poll()
    }
    if !collected.isEmpty, let waiter = batches.take() {
      waiter.resume(returning: collected)
      collected = KafkaReader.Reading()
      collectedBytes = 0
    }
  }

  private var isFull: Bool { collected.records.count >= limit.records || collectedBytes >= limit.bytes }

  /// Takes the available records; waits only for the first one.
  private func poll() {
    var wait: Int32 = collected.isEmpty || !batches.isAwaited ? min(1000, max(1, nextLook.millisecondsLeft)) : 0
    while !isFull, let event = handle.poll(milliseconds: wait) {
      wait = 0
      if event.type == RD_KAFKA_EVENT_FETCH {
        event.forEachMessage(receive)
      } else if let (partition, offset) = event.end {
        collected.ends[partition] = offset
      } else if let error = handle.observe(event) {
        batches.finish(.failure(error))
      }
    }
  }

  private func receive(_ message: UnsafePointer<rd_kafka_message_t>) {
    let record = copier.copy(message)
    let partition = record.topicPartition
    guard let reception = positions[partition]?.receive(record.offset, logStart: handle.logStart(of: partition)),
      handle.follow(reception, to: message)
    else { return }
    collected.records.append(record)
    collectedBytes += record.size
  }

  /// Starts to read new partitions, and drops partitions that are gone, because librdkafka does not continue with a
  /// partition whose topic was deleted and created again. Those of which the cluster cannot say anything now stay.
  private func look(
    _ handles: inout TopicHandles, from start: KafkaReader.Start, milliseconds: Int32
  ) throws(KafkaError) {
    defer { nextLook = .now + Self.lookInterval }
    try ask(&handles, milliseconds: milliseconds)
    silence.end()
    handle.recovered()
    let known = partitionCounts.withLock { $0 }
    let missing = expected.subtracting(known.keys).subtracting(unsure)
    if missing != self.missing { handle.notice(.missing(missing.sorted())) }
    self.missing = missing
    for partition in positions.keys
    where partition.partition >= known[partition.topic] ?? 0 && !unsure.contains(partition.topic) {
      if let topic = handles.handle(partition.topic) { rd_kafka_consume_stop(topic, partition.partition) }
      positions[partition] = nil
    }
    // A partition without a leader must not delay the others.
    var failure: KafkaError?
    for topic in topics where !unsure.contains(topic) {
      for partition in 0..<Int32(clamping: known[topic] ?? 0) {
        let partition = TopicPartition(topic, partition)
        guard positions[partition] == nil, only?.contains(partition) != false, let handle = handles.handle(topic)
        else { continue }
        do throws(KafkaError) {
          try begin(partition, handle, from: start, milliseconds: failure == nil ? milliseconds : 0)
        } catch {
          failure = failure ?? error
        }
      }
    }
    if let failure { throw failure }
  }

  /// Asks for all topics of the cluster while one of the reader's is missing, because a topic that is asked for by name
  /// may be created. Then only for those that are read, and in turn for one of the others: a cluster may have thousands.
  private func ask(_ handles: inout TopicHandles, milliseconds: Int32) throws(KafkaError) {
    let known = partitionCounts.withLock { unsure.union($0.keys) }
    guard known.isSuperset(of: topics + others) else {
      return learn(topics + others, try ClusterMetadata.ask(handle.raw, milliseconds: milliseconds))
    }
    if !others.isEmpty { askedOther = (askedOther + 1) % others.count }
    let deadline = BootInstant.now + .milliseconds(Int(milliseconds))
    for topic in topics + others[askedOther...].prefix(1) {
      let cluster = try ClusterMetadata.ask(
        handle.raw, topic: handles.handle(topic), milliseconds: max(1, deadline.millisecondsLeft))
      learn([topic], cluster)
    }
  }

  private func learn(_ topics: [String], _ cluster: ClusterMetadata) {
    unsure.subtract(topics)
    unsure.formUnion(cluster.unsure.intersection(topics))
    partitionCounts.withLock { counts in
      for topic in topics where !unsure.contains(topic) { counts[topic] = cluster.topics[topic] }
    }
  }

  private func begin(
    _ partition: TopicPartition, _ topic: OpaquePointer, from start: KafkaReader.Start, milliseconds: Int32
  ) throws(KafkaError) {
    // The end must be a number now: the symbolic "end" would be resolved later, when librdkafka asks for it.
    let deadline = BootInstant.now + .milliseconds(Int(milliseconds))
    var low: Int64 = 0
    var high: Int64 = 0
    // Not all partitions of a new topic have leaders at once.
    try handle.retrying(until: deadline) { () throws(KafkaError) in
      let code = rd_kafka_query_watermark_offsets(
        handle.raw, partition.topic, partition.partition, &low, &high, max(1, deadline.millisecondsLeft))
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "end of \(partition)") }
    }
    let first = try self.first(of: partition, start, low...max(low, high), deadline)
    guard rd_kafka_consume_start_queue(topic, partition.partition, first, handle.answers) == 0 else {
      throw KafkaError(rd_kafka_last_error(), "read \(partition)")
    }
    positions[partition] = ReadPosition(first)
    beginnings.withLock { $0[partition] = .init(first: first, end: high) }
  }

  private func first(
    of partition: TopicPartition, _ start: KafkaReader.Start, _ log: ClosedRange<Int64>, _ deadline: BootInstant
  ) throws(KafkaError) -> Int64 {
    switch start {
    case .end: return log.upperBound
    case .beginning: return log.lowerBound
    case .last(let count): return max(log.lowerBound, log.upperBound - count)
    case .offsets(let offsets):
      guard let offset = offsets[partition], !log.contains(offset) else { return offsets[partition] ?? log.lowerBound }
      handle.notice(.gap(partition, expected: offset, found: log.lowerBound))
      return log.lowerBound
    case .time(let time, let whole):
      guard log.upperBound - log.lowerBound > whole else { return log.lowerBound }
      return try handle.offset(of: partition, at: time, milliseconds: max(1, deadline.millisecondsLeft))
        ?? log.upperBound
    }
  }
}
