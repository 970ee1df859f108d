import CReelhaulKafka
import ReelhaulSystem

/// Reads given parts of a topic, such as its last records, without a group.
package final class TopicTail: Sendable {
  /// A record whose value may be cut, with the size of the whole value in bytes.
  package struct Record: Sendable {
    package var record: KafkaRecord
    package var size: Int
  }

  private let client: BlockingClient
  private let topic: String
  private let milliseconds: Int32

  /// Does not connect. `timeout` limits each call.
  package init(
    _ configuration: KafkaConfiguration, topic: String, timeout: Duration = .seconds(5)
  ) throws(KafkaError) {
    let handle = try KafkaHandle(
      .reader, configuration, defaults: KafkaHandle.fetching,
      // Nobody takes these between two calls.
      required: [
        "statistics.interval.ms": "0", "log_level": "0", "enable.auto.commit": "false",
        "enable.auto.offset.store": "false", "enable.partition.eof": "false",
      ])
    client = BlockingClient(handle, name: "kafka-tail")
    self.topic = topic
    milliseconds = Int32(clamping: timeout.milliseconds)
  }

  /// The offsets that each partition has.
  package func bounds() async throws(KafkaError) -> [Int32: Range<Int64>] {
    try await client.run(retryingFor: milliseconds) { [self] () throws(KafkaError) in try boundsNow() }
  }

  private func boundsNow() throws(KafkaError) -> [Int32: Range<Int64>] {
    let cluster = try ClusterMetadata.ask(client.handle.raw, milliseconds: milliseconds)
    guard let count = cluster.topics[topic] else {
      guard cluster.unsure.contains(topic) else { throw .missing(topic) }
      throw KafkaError(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, topic)
    }
    let partitions = (0..<Int32(count)).map { TopicPartition(topic, $0) }
    let (starts, ends) = try client.handle.bounds(of: partitions, milliseconds: milliseconds)
    var bounds: [Int32: Range<Int64>] = [:]
    for partition in partitions {
      let end = max(0, ends[partition] ?? 0)
      bounds[partition.partition] = min(max(0, starts[partition] ?? 0), end)..<end
    }
    return bounds
  }

  /// The records at these offsets, in order within each partition, with up to `bytes` of each value. All of the offsets
  /// must be among the ``bounds()``; records that are dropped meanwhile are left out. Throws a retryable error if they do
  /// not come in time.
  package func records(_ ranges: [Int32: Range<Int64>], bytes: Int) async throws(KafkaError) -> [Record] {
    try await client.run { [self] () throws(KafkaError) in try read(ranges.filter { !$0.value.isEmpty }, bytes) }
  }

  private func read(_ ranges: [Int32: Range<Int64>], _ bytes: Int) throws(KafkaError) -> [Record] {
    guard !ranges.isEmpty else { return [] }
    var handles = TopicHandles(client: client.handle.raw)
    guard let raw = handles.handle(topic) else { throw KafkaError(rd_kafka_last_error(), "read \(topic)") }
    let result: Result<[Record], KafkaError>
    do throws(KafkaError) {
      for (partition, range) in ranges {
        guard rd_kafka_consume_start_queue(raw, partition, range.lowerBound, client.handle.answers) == 0 else {
          throw KafkaError(rd_kafka_last_error(), "read \(topic)")
        }
      }
      result = .success(try collect(ranges, bytes))
    } catch {
      result = .failure(error)
    }
    // Stopping a partition that was not started only fails.
    for partition in ranges.keys { rd_kafka_consume_stop(raw, partition) }
    _ = consume handles
    return try result.get()
  }

  private func collect(_ ranges: [Int32: Range<Int64>], _ bytes: Int) throws(KafkaError) -> [Record] {
    let handle = client.handle
    let deadline = BootInstant.now + .milliseconds(Int(milliseconds))
    var copier = RecordCopier()
    var left = ranges
    var records: [Record] = []
    while !left.isEmpty {
      guard !deadline.hasPassed else {
        throw (handle.trouble ?? KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, "read \(topic)"))
      }
      guard let event = handle.poll(milliseconds: max(1, deadline.millisecondsLeft)) else { continue }
      guard event.type == RD_KAFKA_EVENT_FETCH else {
        if let error = handle.observe(event) { throw error }
        continue
      }
      var failure: KafkaError?
      event.forEachMessage { message in
        guard message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
          failure = KafkaError(message.pointee.err, "read \(topic)")
          return
        }
        guard let range = left[message.pointee.partition], message.pointee.offset >= range.lowerBound else { return }
        let record = copier.copy(message)
        let next = record.offset + 1
        left[record.partition] = next < range.upperBound ? next..<range.upperBound : nil
        guard record.offset < range.upperBound else { return }
        let cut = record.value.map { $0.count > bytes ? Array($0.prefix(bytes)) : $0 }
        records.append(
          Record(
            record: KafkaRecord(
              topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp,
              key: record.key, value: cut, headers: record.headers),
            size: record.value?.count ?? 0))
      }
      if let failure, failure.isRefusal { throw failure }
    }
    return records
  }

  package func close() async {
    await client.close()
  }
}
