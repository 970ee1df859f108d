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

  func sendAll(_ messages: [KafkaMessage]) async throws {
    try await withCheckedThrowingContinuation { call in
      let isAway = unanswered.withLock { calls in
        calls?.append(call)
        return calls != nil
      }
      if !isAway { call.resume() }
    }
    let limit = limit.withLock { $0 }
    guard messages.allSatisfy({ $0.value?.count ?? 0 <= limit }) else {
      throw KafkaError(code: .messageTooLarge, message: "too large")
    }
    self.messages.withLock { $0 += messages }
  }

  func fence(within limit: Duration) async throws {}

  func publish(_ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration) async throws {
    let error = refusal.withLock { refusal in
      refusal.count += refusal.error == nil ? 0 : 1
      return refusal.error
    }
    if let error { throw error }
    try await sendAll(Array(messages))
  }

  func offer(_ message: KafkaMessage) {
    messages.withLock { $0.append(message) }
  }

  func messages(to topic: String) -> [KafkaMessage] {
    messages.withLock { $0.filter { $0.topic == topic } }
  }
}
