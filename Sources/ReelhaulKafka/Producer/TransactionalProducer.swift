import ReelhaulSystem

/// Writes rounds of records in transactions: a round is written completely or not at all. Only one producer at a time
/// can write under a `transactional.id`.
///
/// For one caller, which makes one call at a time. Readers of committed records never see a part of a round.
package final class TransactionalProducer: Sendable {
  private let configuration: KafkaConfiguration
  private let id: String
  private let milliseconds: Int
  private let pool = BlockingPool(name: "kafka-transactions", threads: 1)
  private let client = Lock<TransactionalClient?>(nil)
  private let isClosed = Flag()

  /// Does not connect. The cluster aborts a transaction that takes longer than `timeout`.
  ///
  /// Throws if properties of the configuration do not go together with transactions.
  package init(_ configuration: KafkaConfiguration, id: String, timeout: Duration) throws(KafkaError) {
    self.configuration = configuration
    self.id = id
    milliseconds = Int(timeout.milliseconds)
    try TransactionalClient(configuration, id: id, milliseconds: milliseconds).drop()
  }

  deinit {
    guard !isClosed.isSet else { return }
    client.withLock { $0.take() }?.drop()
    let pool = pool
    Thread(name: "kafka-transactions-end") { pool.shutdown() }.detach()
  }

  /// Shuts out every earlier producer with this id, including this one before the call. Rounds that it committed come
  /// before everything written from now on. Its other rounds are aborted, and later ones are refused.
  package func fence(within limit: Duration) async throws(KafkaError) {
    let deadline = BootInstant.now + limit
    try await run { [client, configuration, id, milliseconds] () throws(KafkaError) in
      client.withLock { $0.take() }?.drop()
      let next = try TransactionalClient(configuration, id: id, milliseconds: milliseconds)
      do throws(KafkaError) {
        try next.fence(by: deadline)
      } catch {
        next.drop()
        throw error
      }
      client.withLock { $0 = next }
    }
  }

  /// Writes the messages in order, in one transaction, and returns when it is committed.
  ///
  /// After a fatal error the transaction may or may not be committed, and ``fence(within:)`` must come before the next
  /// one. After any other error it is not committed; after `messageTooLarge` of a broker, a fence must come first, too.
  package func publish(
    _ messages: some Sequence<KafkaMessage> & Sendable, within limit: Duration
  ) async throws(KafkaError) {
    let deadline = BootInstant.now + limit
    try await run { [client] () throws(KafkaError) in
      guard let current = client.withLock({ $0 }) else { throw .closed("the transactional producer").fatal }
      do throws(KafkaError) {
        try current.write(messages, by: deadline)
        try current.commit(by: deadline)
      } catch {
        do throws(KafkaError) {
          try current.abort(by: deadline)
        } catch _ {
          client.withLock { $0 = nil }
          current.drop()
          throw error.fatal
        }
        throw error
      }
    }
  }

  /// Waits for the running call, and frees the client.
  package func close() async {
    guard !isClosed.testAndSet() else { return }
    let thread = try? await pool.run { [client] in client.withLock { $0.take() }?.drop() }
    await thread?.ended()
    pool.shutdown()
  }

  private func run(_ body: @escaping @Sendable () throws(KafkaError) -> Void) async throws(KafkaError) {
    do {
      try await pool.run { try body() }
    } catch let error as KafkaError {
      throw error
    } catch {
      throw .closed("the transactional producer")
    }
  }
}

extension KafkaError {
  fileprivate var fatal: KafkaError {
    KafkaError(code: code, message: message, isFatal: true)
  }
}
