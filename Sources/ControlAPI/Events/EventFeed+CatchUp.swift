import HTTPServer
import ReelhaulKafka
import ReelhaulSystem
import TaskCore

/// Reading what is no longer in memory.
extension EventFeed {
  /// A partition with so many records is read from its beginning; a longer one from the time of the task's submission.
  private static let whole: Int64 = 100_000

  /// Sends what follows the cursor until memory has the rest. If the topic is not the cursor's, this is a gap, and the
  /// client goes on with the present.
  func catchUp(_ start: EventCursor, _ present: Place) async throws -> Place {
    let (starts, ends) = await hub.span
    guard start.positions.count <= ends.count else { return try await gap() }
    var offsets: [TopicPartition: Int64] = [:]
    for partition in ends.indices {
      let isWitness = start.witness?.partition == partition
      guard isWitness || start[partition] < starts[partition] || start[partition] > ends[partition] else { continue }
      offsets[topicPartition(partition)] = start[partition] - (isWitness ? 1 : 0)
    }
    let partitions = Set(offsets.keys)
    return try await reading(partitions, from: .offsets(offsets)) { reader, found, reached in
      var cursor = start
      for (partition, beginning) in reader.beginnings {
        let partition = Int(partition.partition)
        guard beginning.first > cursor[partition] || cursor[partition] > beginning.end else { continue }
        cursor[partition] = beginning.first
        if cursor.witness?.partition == partition { cursor.witness = nil }
      }
      // One for all partitions: the client reads everything again, whichever they are.
      if cursor != start { try await send(Self.text("gap", cursor)) }
      return try await read(reader, of: partitions, from: cursor, found, reached, present)
    }
  }

  /// Sends the events of a task from its submission on, if the topic has them.
  func history(of id: UniqueID, submittedAt time: Int64) async throws -> Place {
    let partition = try await hub.partition(of: id)
    guard let present = await hub.present else { throw Ended() }
    let only = topicPartition(partition)
    // The clocks of producers and brokers differ.
    return try await reading([only], from: .time(time - 60_000, whole: Self.whole)) { reader, found, reached in
      var cursor = present.cursor
      cursor[partition] = reader.beginnings[only]?.first ?? cursor[partition]
      return try await read(reader, of: [only], from: cursor, found, reached, present)
    }
  }

  private func topicPartition(_ partition: Int) -> TopicPartition {
    TopicPartition(hub.topics.events, Int32(partition))
  }

  private typealias Gaps = Lock<[Int: Int64]>
  /// The cursor behind all that was sent; nil until it is known.
  private typealias Reached = Lock<EventCursor?>

  /// Waits for a place among those who read.
  private func reading(
    _ partitions: Set<TopicPartition>, from start: KafkaReader.Start,
    _ body: (KafkaReader, Gaps, Reached) async throws -> Place
  ) async throws -> Place {
    let reached = Reached(nil)
    return try await pinging(reached) {
      while !(await hub.beginCatchUp()) { try await pause(until: .now + .milliseconds(100)) }
      return try await readingNow(partitions, from: start) { try await body($0, $1, reached) }
    }
  }

  private func readingNow(
    _ partitions: Set<TopicPartition>, from start: KafkaReader.Start,
    _ body: (KafkaReader, Gaps) async throws -> Place
  ) async throws -> Place {
    let result: Result<Place, any Error>
    do {
      let found = Gaps([:])
      let reader = try await hub.open(partitions, from: start) { partition, next in
        found.withLock { $0[Int(partition)] = next }
      }
      // What it tells of its beginnings is known from them.
      found.withLock { $0 = [:] }
      do {
        result = .success(try await body(reader, found))
      } catch {
        result = .failure(error)
      }
      await reader.close()
    } catch {
      result = .failure(error)
    }
    await hub.endCatchUp()
    return try result.get()
  }

  private func read(
    _ reader: KafkaReader, of partitions: Set<TopicPartition>, from start: EventCursor, _ found: Gaps,
    _ reached: Reached, _ present: Place
  ) async throws -> Place {
    let partitions = Set(partitions.map { Int($0.partition) })
    let began = BootInstant.now
    var hasRead = false
    var cursor = start
    /// Where partitions were read to, behind the marks at which transactions end.
    var ends: [Int: Int64] = [:]
    var unproven = start.witness
    while true {
      reached.withLock { [cursor] in $0 = cursor }
      let offsets = present.cursor.positions.indices.map { max(cursor[$0], ends[$0] ?? 0) }
      switch await hub.standing(offsets, reading: partitions, since: present.number) {
      case .anew: return try await gap()
      case .joined(let number) where unproven == nil: return Place(cursor: cursor, number: number)
      // What only memory had of another partition is gone: the client comes back, and reads that one too.
      case .left where hasRead || partitions.isEmpty: throw end(at: cursor)
      // Everyone reads something, however little time there is.
      case .joined, .left, .behind: if hasRead { try await endTurn(since: began, cursor) }
      }
      hasRead = true
      guard let reading = try await reader.read() else { throw Ended() }
      try Task.checkCancellation()
      var text: [UInt8] = []
      for record in reading.records {
        let partition = Int(record.partition)
        if let witness = unproven, witness.partition == partition, record.offset >= cursor[partition] - 1 {
          guard record.offset == cursor[partition] - 1, record.timestamp == witness.timestamp else {
            return try await gap()
          }
          unproven = nil
        }
        if let next = found.withLock({ $0[partition] }), record.offset >= next, cursor[partition] < next {
          cursor[partition] = next
          Self.writeGap(cursor, to: &text)
        }
        guard let entry = EventEntry(record), cursor.pass(entry), filter.admits(entry) else { continue }
        Self.write(entry, Array(cursor.text.utf8), to: &text)
        guard text.count >= Self.chunk else { continue }
        reached.withLock { [cursor] in $0 = cursor }
        try await send(text)
        text = []
        try await endTurn(since: began, cursor)
      }
      reached.withLock { [cursor] in $0 = cursor }
      if !text.isEmpty { try await send(text) }
      for (partition, end) in reading.ends {
        ends[Int(partition.partition)] = end
        if unproven?.partition == Int(partition.partition) { unproven = nil }
      }
    }
  }

  /// Ends a client that has read for too long, or for its turn while others wait. It comes back with this cursor, or
  /// with its last event's if there is no room for it: a slow client's place is not kept until it has read more.
  private func endTurn(since began: BootInstant, _ cursor: EventCursor) async throws {
    let isCrowded = await hub.isCrowded
    let time = isCrowded ? min(hub.settings.catchUpTurn, hub.settings.catchUpTime) : hub.settings.catchUpTime
    if (began + time).hasPassed { throw end(at: cursor) }
  }

  private func end(at cursor: EventCursor) -> Ended {
    _ = stream.send(Self.text("ping", cursor))
    return Ended()
  }
}
