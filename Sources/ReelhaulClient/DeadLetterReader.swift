import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// A command that could not be applied, as the `dead-letters` topic has it.
package struct DeadLetter: Hashable, Sendable {
  /// Its own place in the topic.
  package var partition: Int32
  package var offset: Int64
  package var at: Timestamp
  /// The place of the command. Letters of older workers do not tell its time.
  package var origin: MessageOrigin
  package var code: String
  package var reason: String
  package var key: [UInt8]?
  /// Its value, or the beginning of it.
  package var value: [UInt8]
  /// The size of the whole value in bytes.
  package var bytes: Int
  /// The `ce_id` of the command, if it is a UUID.
  package var commandID: UniqueID?

  package init(
    partition: Int32, offset: Int64, at: Timestamp, origin: MessageOrigin, code: String, reason: String,
    key: [UInt8]? = nil, value: [UInt8], bytes: Int? = nil, commandID: UniqueID? = nil
  ) {
    self.partition = partition
    self.offset = offset
    self.at = at
    self.origin = origin
    self.code = code
    self.reason = reason
    self.key = key
    self.value = value
    self.bytes = bytes ?? value.count
    self.commandID = commandID
  }

  /// The name for people and programs: `PARTITION-OFFSET`.
  package var name: String { "\(partition)-\(offset)" }

  package var isCut: Bool { bytes > value.count }

  /// The task of the command: the key of its record.
  package var taskID: UniqueID? { key.flatMap { UniqueID(String(decoding: $0, as: UTF8.self)) } }

  /// The place in the topic that `name` names.
  package static func place(_ name: String) -> (partition: Int32, offset: Int64)? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy { $0.isASCII && $0.isNumber } }),
      let partition = Int32(parts[0]), let offset = Int64(parts[1])
    else { return nil }
    return (partition, offset)
  }
}

/// Some dead letters, the newest first.
package struct DeadLetterPage: Hashable, Sendable {
  package var letters: [DeadLetter]
  /// For each partition the offset before which the next page begins; nil at the end.
  package var next: [Int32: Int64]?

  package init(letters: [DeadLetter], next: [Int32: Int64]? = nil) {
    self.letters = letters
    self.next = next
  }
}

/// Where dead letters are read.
package protocol DeadLetterSource: Sendable {
  /// Up to `limit` letters before the given offsets, or the newest ones. Their values are cut to ``DeadLetterReader/excerpt``.
  func page(before offsets: [Int32: Int64]?, limit: Int) async throws -> DeadLetterPage
  /// A letter with its whole value; nil if the topic does not have it.
  func letter(_ partition: Int32, _ offset: Int64) async throws -> DeadLetter?
}

/// Reads the `dead-letters` topic. It connects at the first call. Throws ``KafkaError``.
package actor DeadLetterReader: DeadLetterSource {
  /// How many bytes of a value a page has.
  package static let excerpt = 4096

  private let configuration: KafkaConfiguration
  private let topic: String
  private var tail: TopicTail?
  /// The newest letters as they were read last, and what the topic had then.
  private var newest: (page: DeadLetterPage, limit: Int, bounds: [Int32: Range<Int64>])?
  /// One call at a time: a call may read many megabytes, of which a page keeps little.
  private var isBusy = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  package init(_ configuration: KafkaConfiguration, topicPrefix: String) throws(KafkaError) {
    self.configuration = configuration
    topic = try TopicPlan(checking: topicPrefix).deadLetters
  }

  package func page(before offsets: [Int32: Int64]?, limit: Int) async throws -> DeadLetterPage {
    let (page, bounds) = try await alone { [newest] tail throws(KafkaError) in
      let bounds = try await tail.bounds()
      // A dashboard asks again and again.
      if offsets == nil, let newest, newest.limit == limit, newest.bounds == bounds { return (newest.page, bounds) }
      var ends = bounds.mapValues(\.upperBound)
      for (partition, end) in offsets ?? [:] {
        ends[partition] = bounds[partition].map { min(max(end, $0.lowerBound), $0.upperBound) }
      }
      return (try await Self.page(of: tail, before: ends, bounds, limit: limit), bounds)
    }
    if offsets == nil { newest = (page, limit, bounds) }
    return page
  }

  /// Reads a share of each partition first, and then from each as many as are still missing. Fewer than `limit` letters if
  /// large ones do not come in time.
  private static func page(
    of tail: TopicTail, before ends: [Int32: Int64], _ bounds: [Int32: Range<Int64>], limit: Int
  ) async throws(KafkaError) -> DeadLetterPage {
    var page = DeadLetterPage(letters: [], next: ends)
    var limit = limit
    while let next = page.next, page.letters.count < limit {
      let left = next.filter { $0.value > bounds[$0.key]?.lowerBound ?? 0 }
      // Where one partition has most of them, the second round has all that is missing.
      let rest = limit - page.letters.count
      let count = Int64(page.letters.isEmpty ? (rest + left.count - 1) / max(1, left.count) : rest)
      let ranges = Dictionary(
        uniqueKeysWithValues: next.map { partition, end in
          (partition, max(bounds[partition]?.lowerBound ?? 0, end - count)..<end)
        })
      do throws(KafkaError) {
        let letters = try await tail.records(ranges, bytes: excerpt).map(DeadLetter.init)
        let older = newest(letters, in: ranges, of: bounds, limit: rest)
        page.letters += older.letters
        page.next = older.next
        // Kafka has dropped them meanwhile.
        if older.letters.isEmpty { break }
      } catch {
        // What has come so far is a page, too.
        guard page.letters.isEmpty else { break }
        guard error.code == .timedOut, count > 1 else { throw error }
        limit = max(1, limit / 4)
      }
    }
    return page
  }

  package func letter(_ partition: Int32, _ offset: Int64) async throws -> DeadLetter? {
    try await alone { tail throws(KafkaError) in
      guard let bounds = try await tail.bounds()[partition], bounds.contains(offset) else { return nil }
      return try await tail.records([partition: offset..<offset + 1], bytes: .max).first.map(DeadLetter.init)
    }
  }

  package func close() async {
    await tail?.close()
    tail = nil
  }

  /// The newest of the letters that were read: `ranges` of what the topic has. Within a partition they come by their
  /// offsets, and among partitions by their times. It ends where a partition has older letters that were not read.
  package static func newest(
    _ letters: [DeadLetter], in ranges: [Int32: Range<Int64>], of bounds: [Int32: Range<Int64>], limit: Int
  ) -> DeadLetterPage {
    var stacks = Dictionary(grouping: letters, by: \.partition).mapValues { $0.sorted { $0.offset < $1.offset } }
    var next = ranges.mapValues(\.upperBound)
    var page = DeadLetterPage(letters: [])
    while page.letters.count < limit {
      let heads = stacks.values.compactMap(\.last)
      guard let newest = heads.max(by: { ($0.at, $1.partition, $0.offset) < ($1.at, $0.partition, $1.offset) }) else {
        break
      }
      page.letters.append(newest)
      stacks[newest.partition]?.removeLast()
      next[newest.partition] = newest.offset
      let isExhausted = stacks[newest.partition]?.isEmpty ?? true
      if isExhausted {
        let begin = ranges[newest.partition]?.lowerBound ?? 0
        next[newest.partition] = begin
        if begin > bounds[newest.partition]?.lowerBound ?? 0 { break }
      }
    }
    let hasMore = next.contains { partition, end in end > bounds[partition]?.lowerBound ?? 0 }
    page.next = hasMore ? next : nil
    return page
  }

  private func alone<Result: Sendable>(
    _ body: @Sendable (TopicTail) async throws(KafkaError) -> Result
  ) async throws(KafkaError) -> Result {
    while isBusy { await withCheckedContinuation { waiting.append($0) } }
    // Whoever waits for the one that has gone need not.
    guard !Task.isCancelled else { throw .closed("the request") }
    isBusy = true
    defer {
      isBusy = false
      let next = waiting
      waiting = []
      for waiter in next { waiter.resume() }
    }
    let open: TopicTail
    if let tail { open = tail } else { open = try TopicTail(configuration, topic: topic) }
    tail = open
    return try await body(open)
  }
}

extension DeadLetter {
  init(_ tail: TopicTail.Record) {
    let record = tail.record
    func text(_ name: String) -> String {
      record.headers.last { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) } ?? ""
    }
    self.init(
      partition: record.partition, offset: record.offset,
      // Producers may have named any time.
      at: Timestamp(microseconds: min(max(record.timestamp ?? 0, 0), Timestamp.last.microseconds / 1000) * 1000),
      origin: MessageOrigin(
        topic: text("dead-letter-topic"), partition: Int32(text("dead-letter-partition")) ?? -1,
        offset: Int64(text("dead-letter-offset")) ?? -1, timestamp: Int64(text("dead-letter-timestamp")) ?? -1),
      code: text("dead-letter-code"), reason: text("dead-letter-reason"), key: record.key, value: record.value ?? [],
      bytes: max(tail.size, Int(text("dead-letter-cut")) ?? 0),
      commandID: CloudEvent.id(of: record.headers.map { ($0.name, $0.value) }))
  }
}
