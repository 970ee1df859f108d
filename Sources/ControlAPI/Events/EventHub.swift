import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// Reads the topic `events` once for all clients, from the first one on until a while after the last one has gone.
///
/// A client whose place is no longer in memory reads from Kafka until it has caught up; only a few do so at a time.
package actor EventHub {
  package struct Settings: Sendable {
    /// Of the events in memory: bytes, and their number.
    package var ringBytes = 32 << 20
    package var ringItems = 50_000
    /// How many records before the end of each partition are read at first, for clients that come back after a restart.
    package var prefill: Int64 = 1000
    /// How long the topic is read on without clients.
    package var linger = Duration.seconds(60)
    /// How many clients read from Kafka at a time, and how long one may.
    package var catchUps = 4
    package var catchUpTime = Duration.seconds(300)
    /// How long one may while others wait for a place.
    package var catchUpTurn = Duration.seconds(20)
    /// How long a client hears nothing.
    package var ping = Duration.seconds(15)

    package init() {}
  }

  /// One client: what it is called by, and the samples that wait for it.
  final class Client: Sendable {
    let wakeup: Wakeup
    let wantsProgress: Bool
    /// The latest sample of each task, by the task's key.
    let samples = Lock<[[UInt8]: [UInt8]]>([:])

    init(loop: EventLoop, wantsProgress: Bool) {
      wakeup = Wakeup(loop: loop)
      self.wantsProgress = wantsProgress
    }
  }

  nonisolated let loop: EventLoop
  nonisolated let topics: TopicPlan
  nonisolated let settings: Settings
  private let kafka: KafkaConfiguration
  private let log: Logger?
  /// Nil until the topic was opened for the first time since there were no clients.
  private var ring: EventRing?
  /// What reads the topic, or read it last.
  private var reader: KafkaReader?
  /// Where each partition ended when it was opened. A new client gets nothing older.
  private var liveFrom: [Int64] = []
  /// Why the topic cannot be read at present.
  private var trouble: (any Error)?
  private var clients: [ObjectIdentifier: Client] = [:]
  private var reading = Work()
  private var sampling = Work()
  private var idle: LoopTimer?
  private var catchingUp = 0
  /// When a client got no place.
  private var refusedAt: BootInstant?
  /// Whether the topic was made anew, so that the ring is of a former one.
  private var isAnew = false
  /// By partition, where the next record is after some that are gone.
  private let gaps = Lock<[Int32: Int64]>([:])
  /// Why the cluster does not answer the reader of the events; nil if it does.
  private let silence = Lock<KafkaError?>(nil)

  /// What is known of tasks whose samples pass.
  private var traits: [UniqueID: TaskTraits] = [:]
  private static let mostTraits = 20_000

  /// The most samples that wait for a client; more are dropped.
  private static let mostSamples = 2000

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(
    loop: EventLoop, kafka: KafkaConfiguration, topics: TopicPlan, settings: Settings = Settings(), log: Logger? = nil
  ) {
    self.loop = loop
    self.kafka = kafka
    self.topics = topics
    self.settings = settings
    self.log = log
  }

  // MARK: Clients

  func join(_ client: Client) {
    clients[ObjectIdentifier(client)] = client
    idle?.cancel()
    idle = nil
    // The stream that opens them is patient. They are not: they read for all.
    reading.begin(on: loop) { [self] in await readEvents() }
    if client.wantsProgress { sampling.begin(on: loop) { [self] in await readProgress() } }
  }

  func leave(_ client: Client) {
    clients[ObjectIdentifier(client)] = nil
    if !clients.values.contains(where: \.wantsProgress) { sampling.end() }
    guard clients.isEmpty else { return }
    idle = loop.timer(after: settings.linger) { [self] in assumeIsolated { $0.rest() } }
  }

  private func rest() {
    idle = nil
    reading.end()
    (ring, reader) = (nil, nil)
  }

  /// Ends all reading. Clients must have gone.
  package func stop() async {
    idle?.cancel()
    rest()
    sampling.end()
    await reading.ended()
    await sampling.ended()
  }

  /// The partition that has the events of a task. Throws ``NoTopic``.
  func partition(of task: UniqueID) throws -> Int {
    let count = reader?.partitionCount(of: topics.events) ?? 0
    guard let partition = KafkaReader.partition(of: task.utf8, count: count) else { throw NoTopic() }
    // One that was added later and has no record yet is read from its beginning.
    ring?.widen(to: count)
    return Int(partition)
  }

  /// The place of a client that wants what comes from now on; nil while the topic was not read yet.
  var present: EventFeed.Place? {
    guard let ring else { return nil }
    let positions = ring.ends.indices.map { max(ring.ends[$0], $0 < liveFrom.count ? liveFrom[$0] : 0) }
    return EventFeed.Place(cursor: EventCursor(positions: positions), number: ring.end)
  }

  /// The place of a client that comes back; nil if memory has not everything behind its cursor.
  func place(behind cursor: EventCursor) -> EventFeed.Place? {
    guard let ring, ring.covers(cursor) else { return nil }
    return EventFeed.Place(cursor: cursor, number: ring.first)
  }

  /// Whether the topic cannot be read at present.
  var isCut: Bool { trouble != nil }

  /// Whether the topic was made anew since the next event had this number.
  func wasMadeAnew(since number: Int) -> Bool { number < ring?.origin ?? 0 }

  /// By partition, from where on the events are in memory, and up to where they were read.
  var span: (starts: [Int64], ends: [Int64]) { (ring?.starts ?? [], ring?.ends ?? []) }

  /// Where somebody is who reads from Kafka.
  enum Standing {
    /// They have everything before this event, the first in memory.
    case joined(number: Int)
    case behind
    /// Memory has gone on without them in a partition that they do not read.
    case left
    /// The topic was made anew.
    case anew
  }

  /// - Parameters:
  ///   - reached: By partition, where they are.
  ///   - partitions: Those that they read.
  ///   - number: Of the next event, when they began.
  func standing(_ reached: [Int64], reading partitions: Set<Int>, since number: Int) -> Standing {
    guard !wasMadeAnew(since: number) else { return .anew }
    guard let ring else { return .behind }
    let behind = ring.starts.indices.filter { $0 >= reached.count || reached[$0] < ring.starts[$0] }
    if behind.isEmpty { return .joined(number: ring.first) }
    return partitions.isSuperset(of: behind) ? .behind : .left
  }

  /// What a client gets next from memory, as text of at most about `limit` bytes. Nil if it is too late for this.
  func next(_ place: EventFeed.Place, _ filter: EventFilter, limit: Int) -> (EventFeed.Place, [UInt8])? {
    guard let ring, place.number >= ring.first else { return nil }
    var (place, text) = (place, [UInt8]())
    // Of a client that has everything before, the cursor is that of the ring.
    var cursor: [UInt8]?
    func settle() {
      if let known = cursor.flatMap({ EventCursor(String(decoding: $0, as: UTF8.self)) }) { place.cursor = known }
      cursor = nil
    }
    while text.count < limit, let item = ring[place.number] {
      place.number += 1
      switch item {
      case .event(let entry, let common):
        if place.isCurrent { cursor = common } else if !place.cursor.pass(entry) { continue }
        guard filter.admits(entry) else { continue }
        EventFeed.write(entry, cursor ?? Array(place.cursor.text.utf8), to: &text)
      case .gap(let partition, let found):
        settle()
        guard place.cursor[partition] < found else { continue }
        place.cursor[partition] = found
        if place.cursor.witness?.partition == partition { place.cursor.witness = nil }
        EventFeed.writeGap(place.cursor, to: &text)
      }
    }
    settle()
    place.isCurrent = place.isCurrent || ring.isCurrent(place)
    return (place, text)
  }

  /// Takes one of the places of those who read from Kafka; false if all are taken.
  func beginCatchUp() -> Bool {
    guard catchingUp < settings.catchUps else {
      refusedAt = .now
      return false
    }
    catchingUp += 1
    return true
  }

  func endCatchUp() { catchingUp -= 1 }

  /// Whether clients wait for a place. They ask again all the time.
  var isCrowded: Bool { refusedAt.map { .now - $0 < .seconds(1) } ?? false }

  /// A reader for one client. Throws ``KafkaError``.
  nonisolated func open(
    _ partitions: Set<TopicPartition>, from start: KafkaReader.Start, _ gap: @escaping @Sendable (Int32, Int64) -> Void
  ) async throws -> KafkaReader {
    var kafka = kafka
    kafka.observer = { if case .gap(let partition, _, let found) = $0 { gap(partition.partition, found) } }
    return try await KafkaReader.open(kafka, topics: [topics.events], only: partitions, from: start, tellsEnds: true)
  }

  private func wakeAll() {
    for client in clients.values { client.wakeup.assumeIsolated { $0.call() } }
  }

  // MARK: Events

  private func readEvents() async {
    var backoff = Backoff(base: .milliseconds(100), limit: .seconds(5), seed: .random(in: 0 ... .max))
    while !Task.isCancelled {
      do {
        let reader = try await openEvents()
        set(nil)
        try await read(reader) { records in
          backoff.reset()
          if trouble != nil { note(nil) }
          return take(records)
        }
      } catch {
        guard !Task.isCancelled else { return }
        set(error)
        try? await loop.sleep(for: backoff.next())
      }
    }
  }

  /// Gives all that `reader` reads to `take` until that returns false, and closes it.
  private func read(_ reader: KafkaReader, _ take: ([KafkaRecord]) -> Bool) async throws {
    do {
      while let records = try await reader.next(), !Task.isCancelled, take(records) {}
    } catch {
      await reader.close()
      throw error
    }
    await reader.close()
  }

  private func set(_ trouble: (any Error)?) {
    let (former, isAway) = (self.trouble, trouble is KafkaError)
    if let trouble {
      if former.map({ ($0 is KafkaError) != isAway }) ?? true {
        let message = isAway ? "Kafka cannot be reached" : "no events can be read"
        log?.warning(message, ["error": .text("\(trouble)")])
      }
    } else if let former {
      log?.notice(former is KafkaError ? "Kafka can be reached again" : "events are read again")
    }
    self.trouble = trouble
    wakeAll()
  }

  /// Called on the thread of the reader, also where nothing has changed.
  private nonisolated func note(_ cause: KafkaError?) {
    let isNews = silence.withLock { silence in
      defer { silence = cause }
      return silence != cause
    }
    guard isNews else { return }
    // What holds by then, in whatever order these come.
    loop.task { [self] in await set(silence.withLock { $0 }) }
  }

  /// Goes on where it ended before, or begins with a topic that was made anew.
  private func openEvents() async throws -> KafkaReader {
    var kafka = kafka
    // The former reader may have ended in silence.
    silence.withLock { $0 = nil }
    kafka.observer = { [self] notice in
      switch notice {
      case .gap(let partition, _, let found): gaps.withLock { $0[partition.partition] = found }
      case .unanswered(let error): note(error)
      // It is told once, and over with the next event: what is asked for by name is answered all the same.
      case .error(let error) where error.isTopicRefusal: note(error)
      case .answered where silence.withLock({ $0?.isTopicRefusal != true }): note(nil)
      default: break
      }
    }
    let former = isAnew ? nil : ring?.ends
    // Gaps of a former topic, or before what was in memory, say nothing.
    if former == nil { gaps.withLock { $0 = [:] } }
    let start: KafkaReader.Start
    if let former {
      let ends = former.enumerated().map { (TopicPartition(topics.events, Int32($0.offset)), $0.element) }
      start = .offsets(Dictionary(uniqueKeysWithValues: ends))
    } else {
      start = .last(settings.prefill)
    }
    let reader = try await KafkaReader.open(kafka, topics: [topics.events], from: start)
    guard !Task.isCancelled else {
      // Nobody keeps what it would read.
      await reader.close()
      throw CancellationError()
    }
    let count = reader.partitionCount(of: topics.events)
    guard count > 0 else {
      await reader.close()
      throw NoTopic()
    }
    self.reader = reader
    guard former == nil else { return reader }
    // One may have come since it was counted.
    let beginnings = reader.beginnings
    let partitions = beginnings.keys.reduce(count) { max($0, Int($1.partition) + 1) }
    var (firsts, ends) = ([Int64](repeating: 0, count: partitions), [Int64](repeating: 0, count: partitions))
    for (partition, beginning) in beginnings {
      (firsts[Int(partition.partition)], ends[Int(partition.partition)]) = (beginning.first, beginning.end)
    }
    // Every client of a former topic is before the origin, and finds out there.
    let origin = ring.map { $0.end + 1 } ?? 0
    ring = EventRing(bytes: settings.ringBytes, items: settings.ringItems, beginnings: firsts, origin: origin)
    liveFrom = ends
    isAnew = false
    return reader
  }

  /// False if the topic was made anew.
  private func take(_ records: [KafkaRecord]) -> Bool {
    let found = gaps.withLock { $0 }
    for record in records {
      if ring?.hasPassed(partition: Int(record.partition), offset: record.offset) == true {
        isAnew = true
        wakeAll()
        return false
      }
      if let next = found[record.partition], record.offset >= next {
        gaps.withLock { $0[record.partition] = nil }
        ring?.appendGap(partition: Int(record.partition), found: next)
      }
      if let entry = EventEntry(record) {
        ring?.append(entry)
      } else {
        ring?.pass(partition: Int(record.partition), offset: record.offset)
      }
    }
    wakeAll()
    return true
  }

  // MARK: Samples

  /// The queues and kinds of these tasks. `lookUp` is asked for those that are not known yet.
  func traits(
    of ids: [UniqueID], lookUp: @Sendable ([UniqueID]) async throws -> [UniqueID: TaskTraits]
  ) async throws -> [UniqueID: TaskTraits] {
    var answer = ids.reduce(into: [:]) { $0[$1] = traits[$1] }
    let unknown = ids.filter { answer[$0] == nil }
    guard !unknown.isEmpty else { return answer }
    let found = try await lookUp(unknown)
    if traits.count + found.count > Self.mostTraits { traits = [:] }
    traits.merge(found) { $1 }
    answer.merge(found) { $1 }
    return answer
  }

  /// Samples may get lost.
  private func readProgress() async {
    while !Task.isCancelled {
      do {
        let reader = try await KafkaReader.open(kafka, topics: [topics.progress], from: .end)
        try await read(reader) { records in
          offer(records)
          return true
        }
      } catch {
        try? await loop.sleep(for: .seconds(1))
      }
    }
  }

  private func offer(_ records: [KafkaRecord]) {
    for client in clients.values where client.wantsProgress {
      client.samples.withLock { samples in
        for record in records {
          guard let key = record.key, let value = record.value else { continue }
          if samples.count < Self.mostSamples || samples[key] != nil { samples[key] = value }
        }
      }
      client.wakeup.assumeIsolated { $0.call() }
    }
  }
}

extension EventHub {
  /// The topic does not exist.
  struct NoTopic: Error {}

  /// Something that is done while there are clients for it. It begins anew once it has ended, and so never runs twice at once.
  private struct Work {
    private var task: Task<Void, any Error>?
    private var isWanted = false

    mutating func begin(on loop: EventLoop, _ body: @escaping @Sendable () async -> Void) {
      guard !isWanted else { return }
      isWanted = true
      task = loop.task(priority: .medium) { [task] in
        _ = await task?.result
        await body()
      }
    }

    mutating func end() {
      isWanted = false
      task?.cancel()
    }

    func ended() async { _ = await task?.result }
  }
}
