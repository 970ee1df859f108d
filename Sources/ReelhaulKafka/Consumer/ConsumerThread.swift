import CReelhaulKafka
import ReelhaulSystem
import Synchronization

/// The thread behind a ``KafkaConsumer``: polls, collects records until a task waits for them, answers rebalances and
/// sends commits. The events of one queue arrive in order, so a record is never accepted for a partition that is gone.
// @unchecked: `shared` has its own lock; only the thread uses everything else.
final class ConsumerThread: @unchecked Sendable {
  enum Request {
    case commit([KafkaBatch.Range])
    case answer(GroupAnswer, to: Int)
    case share([TopicPartition], GroupAnswer)
    case take([TopicPartition])
    case join
    case leave
    case pause
    case resume
  }

  private struct Shared {
    var requests: [Request] = []
    var assignment: [TopicPartition] = []
    var deadline: BootInstant?
    /// Whether the client may be freed already.
    var hasEnded = false
  }

  struct Revocation {
    let partitions: [TopicPartition]
    let deadline: BootInstant
  }

  let handle: KafkaHandle
  let options: KafkaConsumer.Options
  let batches = Rendezvous<KafkaBatch>()
  private let topics: [String]
  private let shared = Lock(Shared())

  /// Records of the assigned partitions that are not done.
  let lag = Atomic(0)
  private var nextMeasurement = BootInstant.now

  var ledger = AssignmentLedger()
  var flow = FlowControl()
  var exchange = GroupExchange()
  let inquirer: GroupInquirer
  /// The partitions that the group has assigned and that are not taken yet, because the group's offsets are being asked
  /// for.
  var coming: [TopicPartition]?
  var revocation: Revocation?
  /// The partitions to read, if they do not come from the group.
  var wanted: Set<TopicPartition>?
  var nextLook = BootInstant.now
  var stalls = StallDetector()
  /// Whether the next question to the group also searches for partitions that bring no records.
  var shallSearch = false
  var isClosing = false
  private var isMember = false
  /// Whether it ever was.
  private var hasJoined = false
  /// Whether the group has ever assigned partitions to this member, perhaps an empty set.
  var wasAssigned = false
  private var copier = RecordCopier()
  private var collected: [KafkaRecord] = []
  private var collectedBytes = 0
  /// Since when the buffer has been full while no task waits.
  private var fullSince: BootInstant?
  private var isDrained = false

  init(_ handle: KafkaHandle, topics: [String], options: KafkaConsumer.Options) {
    self.handle = handle
    self.topics = topics
    self.options = options
    inquirer = GroupInquirer(handle)
  }

  // MARK: From any thread

  func add(_ request: Request) {
    shared.withLock { shared in
      guard !shared.hasEnded else { return }
      shared.requests.append(request)
      handle.wake()
    }
  }

  func wake() {
    shared.withLock { if !$0.hasEnded { handle.wake() } }
  }

  func stop(by deadline: BootInstant) {
    shared.withLock { shared in
      guard shared.deadline == nil else { return }
      shared.deadline = deadline
      handle.wake()
    }
  }

  var assignment: [TopicPartition] { shared.withLock { $0.assignment } }

  func publishAssignment() {
    let partitions = ledger.partitions
    shared.withLock { $0.assignment = partitions }
  }

  // MARK: The thread

  func run() {
    var deadline: BootInstant?
    repeat {
      deadline = takeRequests()
      changePartitions()
      askGroup()
      deliver()
      finishRevocation()
      lookAfterPartitions()
      measureLag()
      regulate()
      if deadline == nil { wait() }
    } while deadline == nil
    close(by: deadline ?? .now)
    shared.withLock { $0.hasEnded = true }
    guard wasAssigned || !hasJoined || !KafkaHandle.mayAbortJoining else {
      inquirer.abandon()
      return handle.abandon()
    }
    // A separate thread, for which nothing waits: librdkafka 2.0 may never finish if a topic was deleted.
    Thread(name: "kafka-consumer-end") { [handle, inquirer] in
      inquirer.shutdown()
      handle.destroy()
    }.detach()
  }

  private func measureLag() {
    guard nextMeasurement.hasPassed else { return }
    nextMeasurement = .now + .seconds(1)
    let records = ledger.ends.reduce(0) { $0 + max(0, handle.logEnd(of: $1.key) - $1.value) }
    lag.store(Int(records), ordering: .relaxed)
  }

  private func join() {
    guard !isMember else { return }
    isMember = true
    hasJoined = true
    let list = PartitionList(topics.map { TopicPartition($0, -1) })
    let code = list.lend { rd_kafka_subscribe(handle.raw, $0) }
    if code != RD_KAFKA_RESP_ERR_NO_ERROR {
      batches.finish(.failure(KafkaError(code, "subscribe", isFatal: true)))
    }
  }

  private func leave() {
    guard isMember else { return }
    isMember = false
    rd_kafka_unsubscribe(handle.raw)
  }

  private func takeRequests() -> BootInstant? {
    let (requests, deadline) = shared.withLock { shared in
      defer { shared.requests.removeAll(keepingCapacity: true) }
      return (shared.requests, shared.deadline)
    }
    for request in requests {
      switch request {
      case .commit(let ranges): for range in ranges { ledger.done(range) }
      case .answer(let answer, let number): answered(answer, to: number)
      case .share(let partitions, let answer): take(partitions, answer)
      case .take(let partitions):
        wanted = Set(partitions)
        ledger.isShared = true
      case .join: join()
      case .leave: leave()
      case .pause: flow.isPaused = true
      case .resume: flow.isPaused = false
      }
    }
    return deadline
  }

  private var isFull: Bool { collected.count >= options.records || collectedBytes >= options.bytes }

  /// Hands a batch to the waiting task: a full one, or a smaller one if no more records come at once.
  private func deliver() {
    guard !collected.isEmpty, isFull || isDrained, let waiter = batches.take() else { return }
    let records = takeCollected()
    waiter.resume(returning: KafkaBatch(records: records, ranges: ledger.handOut(records)))
  }

  private func takeCollected() -> [KafkaRecord] {
    if collected.count <= options.records, collectedBytes <= options.bytes {
      defer { (collected, collectedBytes) = ([], 0) }
      return collected
    }
    var count = 0
    var bytes = 0
    while count < collected.count, count < options.records, bytes < options.bytes {
      bytes += collected[count].size
      count += 1
    }
    defer {
      collected.removeFirst(count)
      collectedBytes -= bytes
    }
    return Array(collected[..<count])
  }

  /// Pauses the partitions when the buffer stays full, and resumes them when there is room again.
  private func regulate() {
    if isFull {
      stalls.full()
      let isTooFull = collected.count >= 2 * options.records || collectedBytes >= 2 * options.bytes
      if isTooFull || fullSince?.hasPassed == true {
        flow.isFull = true
      } else if fullSince == nil {
        fullSince = .now + options.patience
      }
    } else {
      fullSince = nil
      flow.isFull = false
    }
    flow.apply(to: ledger.partitions, on: handle)
  }

  private func wait() {
    isDrained = false
    if isFull, !flow.isFull, revocation == nil, let fullSince {
      handle.rest(milliseconds: max(1, fullSince.millisecondsLeft))
      return
    }
    var milliseconds: Int32 = 1000
    if !collected.isEmpty, batches.isAwaited { milliseconds = 0 }
    if let revocation { milliseconds = min(milliseconds, max(1, revocation.deadline.millisecondsLeft)) }
    if ledger.hasUncommitted, let nextCommit = exchange.nextCommit {
      milliseconds = min(milliseconds, max(1, nextCommit.millisecondsLeft))
    }
    for _ in 0..<1000 {
      guard let event = handle.poll(milliseconds: milliseconds) else {
        isDrained = true
        if !flow.isFull, !flow.isPaused { stalls.idle() }
        return
      }
      milliseconds = 0
      process(event)
      if isFull { return }
    }
  }

  private func process(_ event: borrowing KafkaEvent) {
    switch event.type {
    case RD_KAFKA_EVENT_FETCH: event.forEachMessage(receive)
    case RD_KAFKA_EVENT_REBALANCE: rebalance(event)
    case RD_KAFKA_EVENT_OFFSET_COMMIT: committed(event)
    default:
      if let end = event.end {
        return ledger.ended(end.partition, at: end.offset, logStart: handle.logStart(of: end.partition))
      }
      if let error = handle.observe(event) { batches.finish(.failure(error)) }
    }
  }

  private func receive(_ message: UnsafePointer<rd_kafka_message_t>) {
    let record = copier.copy(message)
    let partition = record.topicPartition
    guard let reception = ledger.receive(partition, record.offset, logStart: handle.logStart(of: partition)),
      handle.follow(reception, to: message)
    else { return }
    if stalls.receive(partition, record.offset) { handle.notice(.stalled(partition)) }
    collected.append(record)
    collectedBytes += record.size
  }

  /// Drops collected records of partitions that leave this member.
  func discard(_ partitions: [TopicPartition]) {
    let gone = Set(partitions)
    collected.removeAll { gone.contains($0.topicPartition) }
    collectedBytes = collected.reduce(0) { $0 + $1.size }
  }

  private func close(by deadline: BootInstant) {
    isClosing = true
    batches.finish(.success(()))
    while ledger.hasUncommitted, !deadline.hasPassed {
      _ = takeRequests()
      askGroup()
      pollOnce(by: deadline)
    }
    if let coming { take(coming, nil) }
    finishRevocation()
    if let error = rd_kafka_consumer_close_queue(handle.raw, handle.answers) {
      handle.notice(.error(KafkaError(consuming: error, "leaving the group")))
    } else {
      while rd_kafka_consumer_closed(handle.raw) == 0, !deadline.hasPassed { pollOnce(by: deadline) }
    }
  }

  private func pollOnce(by deadline: BootInstant) {
    if let event = handle.poll(milliseconds: min(10, deadline.millisecondsLeft)) { process(event) }
  }
}
