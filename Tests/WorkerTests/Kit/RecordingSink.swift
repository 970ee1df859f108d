import ReelhaulKafka
import ReelhaulSystem
import WorkerCore

/// Keeps the produced messages. Like a broker, it refuses long values: of more than 1 MiB, unless a test says otherwise.
final class RecordingSink: MessageSink, RoundSink {
  private let messages = Lock<[KafkaMessage]>([])
  /// The calls without an answer while the broker is unreachable; nil while it answers.
  private let unanswered = Lock<[CheckedContinuation<Void, any Error>]?>(nil)

  private let limit = Lock(1 << 20)

  func limitValues(to bytes: Int) { limit.withLock { $0 = bytes } }

  private let refusal = Lock<(error: KafkaError?, count: Int)>((nil, 0))

  /// Lets rounds fail with this error from now on, or succeed again if it is nil. Returns how many have failed before.
  @discardableResult
  func refuse(_ error: KafkaError?) -> Int {
    refusal.withLock { refusal in
      refusal.error = error
      return refusal.count
    }
  }

  /// How many rounds have failed.
  var refused: Int { refusal.withLock { $0.count } }

  /// Acknowledges nothing from now on.
  func goAway() { unanswered.withLock { $0 = $0 ?? [] } }

  var isWaitedFor: Bool { unanswered.withLock { $0?.isEmpty == false } }

  /// Fails all waiting calls, like a closed producer.
  func close() {
    let calls = unanswered.withLock { calls in
      defer { calls = nil }
      return calls ?? []
    }
    for call in calls { call.resume(throwing: KafkaError(code: .closed, message: "closed")) }
  }

  private let unwritable = Lock<(value: [UInt8]?, count: Int)>((nil, 0))

  /// Lets messages with this value fail; nil for none.
  func refuseValue(_ value: [UInt8]?) { unwritable.withLock { $0.value = value } }

  /// How many such messages have failed.
  var refusedValues: Int { unwritable.withLock { $0.count } }

  func failures(writing messages: [KafkaMessage]) async -> [Int: KafkaError] {
    do {
      try await answer()
    } catch {
      let closed = KafkaError(code: .closed, message: "\(error)")
      return Dictionary(uniqueKeysWithValues: messages.indices.map { ($0, closed) })
    }
    let limit = limit.withLock { $0 }
    let unwritable = unwritable.withLock { $0.value }
    var failures: [Int: KafkaError] = [:]
    for (index, message) in messages.enumerated() {
      if let value = message.value, value.count > limit {
        failures[index] = KafkaError(code: .messageTooLarge, message: "too large")
      } else if let unwritable, message.value == unwritable {
        self.unwritable.withLock { $0.count += 1 }
        failures[index] = KafkaError(code: .closed, message: "no leader")
      } else {
        self.messages.withLock { $0.append(message) }
      }
    }
    return failures
  }

  private func answer() async throws {
    try await withCheckedThrowingContinuation { call in
      let isAway = unanswered.withLock { calls in
        calls?.append(call)
        return calls != nil
      }
      if !isAway { call.resume() }
    }
  }

  func fence(within limit: Duration) async throws {}

  func publish(_ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration) async throws {
    let error = refusal.withLock { refusal in
      refusal.count += refusal.error == nil ? 0 : 1
      return refusal.error
    }
    if let error { throw error }
    try await answer()
    let limit = self.limit.withLock { $0 }
    guard messages.allSatisfy({ $0.value?.count ?? 0 <= limit }) else {
      throw KafkaError(code: .messageTooLarge, message: "too large")
    }
    self.messages.withLock { $0 += messages }
  }

  var dropped: Int { 0 }

  func offer(_ message: KafkaMessage) {
    messages.withLock { $0.append(message) }
  }

  func messages(to topic: String) -> [KafkaMessage] {
    messages.withLock { $0.filter { $0.topic == topic } }
  }
}
