import CReelhaulKafka
import Glibc
import ReelhaulSystem

/// The thread behind a ``KafkaProducer``: gives messages to librdkafka, never more than the window allows, and receives
/// their results. If the window is full, messages wait. So a slow broker slows its senders, and no message is lost
/// because a queue is full.
// @unchecked: `shared` has its own lock; only the thread uses everything else.
final class ProducerThread: @unchecked Sendable {
  private struct Shared {
    var batches: [SendBatch] = []
    var offers: [KafkaMessage] = []
    var dropped = 0
    var isOpen = true
    var hasFailed = false
    /// Whether the thread waits for events, or is about to: a caller that adds work must wake it.
    var isWaiting = false
    var deadline: BootInstant?
  }

  private let handle: KafkaHandle
  private let window: KafkaProducer.Window
  /// librdkafka counts it from when it gets a message. Nil for no end.
  private let timeout: Duration?
  private let shared = Lock(Shared())

  /// Batches with messages that librdkafka does not have yet, in order of arrival.
  private var pending: [SendBatch] = []
  private var open: [ObjectIdentifier: SendBatch] = [:]
  private var offers: [KafkaMessage] = []
  private var acknowledgedAt = BootInstant.now
  private var inFlight = 0
  private var bytesInFlight = 0

  init(_ handle: KafkaHandle, window: KafkaProducer.Window, timeout: Duration?) {
    self.handle = handle
    self.window = window
    self.timeout = timeout
  }

  // MARK: From any thread

  /// Returns `false` if the producer is closed; the batch is then unchanged.
  func add(_ batch: SendBatch) -> Bool {
    shared.withLock { shared in
      guard shared.isOpen else { return false }
      shared.batches.append(batch)
      wakeIfWaiting(&shared)
      return true
    }
  }

  /// Drops the message if a full window of messages is waiting already.
  func offer(_ message: KafkaMessage) {
    shared.withLock { shared in
      guard shared.isOpen, shared.offers.count < window.messages else {
        shared.dropped += 1
        return
      }
      shared.offers.append(message)
      wakeIfWaiting(&shared)
    }
  }

  var dropped: Int { shared.withLock { $0.dropped } }

  var hasFailed: Bool { shared.withLock { $0.hasFailed } }

  func stop(by deadline: BootInstant) {
    shared.withLock { shared in
      guard shared.isOpen else { return }
      shared.isOpen = false
      shared.deadline = deadline
      handle.wake()
    }
  }

  private func wakeIfWaiting(_ shared: inout Shared) {
    guard shared.isWaiting else { return }
    shared.isWaiting = false
    handle.wake()
  }

  // MARK: The thread

  func run() {
    var topics = TopicHandles(client: handle.raw)
    var deadline: BootInstant?
    while true {
      deadline = takeWork() ?? deadline
      expire()
      fill(&topics)
      if let deadline, open.isEmpty && offers.isEmpty && inFlight == 0 || deadline.hasPassed { break }
      // New work wakes the thread from this wait. While the producer closes, the wait is 100 ms at most.
      let wait = deadline.map { min($0.millisecondsLeft, 100) } ?? 1000
      drain(milliseconds: wait)
    }
    abandon()
    _ = consume topics
    handle.destroy()
  }

  private func takeWork() -> BootInstant? {
    shared.withLock { shared in
      for batch in shared.batches { open[ObjectIdentifier(batch)] = batch }
      pending.append(contentsOf: shared.batches)
      shared.batches.removeAll(keepingCapacity: true)
      if offers.isEmpty { swap(&offers, &shared.offers) }
      shared.isWaiting = true
      return shared.deadline
    }
  }

  /// While nothing is acknowledged, what waits for the window times out as what is in it does. Otherwise calls would wait
  /// for many times as long, and ever more of them.
  private func expire() {
    guard let timeout, acknowledgedAt + timeout <= .now else { return }
    let late = pending.prefix { $0.begunAt + timeout <= .now }
    for batch in late where batch.failRest(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT) { finish(batch) }
    pending.removeFirst(late.count)
  }

  private var windowIsFull: Bool { inFlight >= window.messages || bytesInFlight >= window.bytes }

  private func fill(_ topics: inout TopicHandles) {
    var first = 0
    filling: while first < pending.count, !windowIsFull {
      let batch = pending[first]
      while batch.next < batch.messages.count, !windowIsFull {
        let slot = batch.slot(batch.next)
        let code = produce(batch.messages[batch.next], slot, &topics)
        if code == RD_KAFKA_RESP_ERR__QUEUE_FULL { break filling }
        batch.next += 1
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
          settle(slot, SendBatch.Result(code: code.rawValue))
        }
      }
      if batch.next == batch.messages.count { first += 1 }
    }
    pending.removeFirst(first)
    guard pending.isEmpty, !offers.isEmpty else { return }
    var refused = 0
    for message in offers {
      if windowIsFull || produce(message, nil, &topics) != RD_KAFKA_RESP_ERR_NO_ERROR { refused += 1 }
    }
    offers.removeAll(keepingCapacity: true)
    if refused > 0 { shared.withLock { $0.dropped += refused } }
  }

  private func produce(
    _ message: KafkaMessage, _ slot: UnsafeMutablePointer<SendBatch.Slot>?, _ topics: inout TopicHandles
  ) -> rd_kafka_resp_err_t {
    let code = topics.produce(message, opaque: slot)
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      inFlight += 1
      bytesInFlight += Self.size(key: message.key?.count ?? 0, value: message.value?.count ?? 0)
    }
    return code
  }

  /// Handles events: waits for the first one, then takes all available ones.
  private func drain(milliseconds: Int32) {
    var wait = milliseconds
    for _ in 0..<64 {
      guard let event = handle.poll(milliseconds: wait) else { break }
      wait = 0
      if event.type == RD_KAFKA_EVENT_DR {
        event.forEachMessage(delivered)
      } else if handle.observe(event) != nil {
        shared.withLock { $0.hasFailed = true }
        failPending(RD_KAFKA_RESP_ERR__FATAL)
      }
    }
    shared.withLock { $0.isWaiting = false }
  }

  private func delivered(_ message: UnsafePointer<rd_kafka_message_t>) {
    inFlight -= 1
    let result = SendBatch.Result(
      offset: message.pointee.offset, partition: message.pointee.partition, code: message.pointee.err.rawValue)
    bytesInFlight -= Self.size(key: message.pointee.key_len, value: message.pointee.len)
    if message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR {
      handle.recovered()
      acknowledgedAt = .now
    }
    if let slot = message.pointee._private?.assumingMemoryBound(to: SendBatch.Slot.self) {
      settle(slot, result)
    } else if message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR {
      shared.withLock { $0.dropped += 1 }
    }
  }

  /// The approximate number of bytes of a pending message; its headers are few and short.
  private static func size(key: Int, value: Int) -> Int { 512 + key + value }

  private func settle(_ slot: UnsafeMutablePointer<SendBatch.Slot>, _ result: SendBatch.Result) {
    let batch = slot.pointee.batch
    if batch.settle(slot, result) { finish(batch) }
  }

  private func finish(_ batch: SendBatch) {
    open[ObjectIdentifier(batch)] = nil
    batch.complete(because: handle.trouble)
  }

  private func failPending(_ code: rd_kafka_resp_err_t) {
    for batch in pending where batch.failRest(code) { finish(batch) }
    pending.removeAll()
  }

  /// Ends the thread's work: fails all messages that are not acknowledged.
  private func abandon() {
    failPending(RD_KAFKA_RESP_ERR__DESTROY)
    if inFlight > 0 {
      rd_kafka_purge(handle.raw, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT)
      let deadline = BootInstant.now + .seconds(1)
      while inFlight > 0, !deadline.hasPassed { drain(milliseconds: deadline.millisecondsLeft) }
    }
    for batch in open.values { batch.complete(because: handle.trouble) }
    open.removeAll()
  }
}
