import CReelhaulKafka
import ReelhaulSystem

/// Messages that are being sent, with a slot for the result of each. A message carries the address of its slot through
/// librdkafka.
// @unchecked: handed once to the poll thread, and touched only by it from then on.
final class SendBatch: @unchecked Sendable {
  struct Result {
    var offset: Int64 = -1
    var partition: Int32 = -1
    /// The result of a message that was still open when the producer ended.
    var code = KafkaError.Code.closed.rawValue
  }

  struct Slot {
    unowned(unsafe) let batch: SendBatch
    var result = Result()
  }

  let messages: [KafkaMessage]
  let begunAt = BootInstant.now
  private let slots: UnsafeMutablePointer<Slot>
  private var remaining: Int
  /// The first message that librdkafka does not have yet.
  var next = 0
  private var completion: ((Deliveries) -> Void)?

  init(_ messages: [KafkaMessage], completion: @escaping (Deliveries) -> Void) {
    self.messages = messages
    self.completion = completion
    remaining = messages.count
    slots = .allocate(capacity: messages.count)
    for index in messages.indices {
      (slots + index).initialize(to: Slot(batch: self))
    }
  }

  deinit {
    slots.deallocate()
  }

  func slot(_ index: Int) -> UnsafeMutablePointer<Slot> { slots + index }

  /// Stores the result of one message. Returns true if it was the last open one.
  func settle(_ slot: UnsafeMutablePointer<Slot>, _ result: Result) -> Bool {
    slot.pointee.result = result
    remaining -= 1
    return remaining == 0
  }

  /// Fails every message that librdkafka does not have yet. Returns true if none is open then.
  func failRest(_ code: rd_kafka_resp_err_t) -> Bool {
    while next < messages.count {
      slots[next].result.code = code.rawValue
      remaining -= 1
      next += 1
    }
    return remaining == 0
  }

  /// Answers the sender. Later calls do nothing. `trouble`: why messages may not have been acknowledged.
  func complete(because trouble: KafkaError? = nil) {
    let results = (0..<messages.count).map { slots[$0].result }
    completion?(Deliveries(slots: results, trouble: trouble))
    completion = nil
  }

  static func error(_ code: Int32) -> KafkaError {
    let code = rd_kafka_resp_err_t(rawValue: code)
    return KafkaError(code, "message was not acknowledged", isFatal: code == RD_KAFKA_RESP_ERR__FATAL)
  }
}
