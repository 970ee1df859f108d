import ReelhaulKafka
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// The parts that a worker acts with: the real ones, or those of a test.
package struct WorkerParts: Sendable {
  package var store: any TaskStore
  /// The same store, used only for the lease, so that calls that wait for a lock cannot delay its renewal.
  package var leases: any LeaseStore
  package var commands: any CommandSource
  package var signals: any SignalSource
  /// Every message is acknowledged.
  package var messages: any MessageSink
  /// For the relay.
  package var rounds: any RoundSink
  /// Messages may get lost.
  package var progress: any MessageSink
  package var handlers: HandlerTable
  /// The roots that are watched, and whose staging files are swept.
  package var storage: Storage
  /// The transfers, for the metrics.
  package var transfers: StorageRoots?
  /// Posts web hooks; nil leaves them to other workers.
  package var hooks: (any HookSending)?
  /// Gets the spans of tasks; nil if nobody wants them.
  package var tracer: Tracer?
  /// Gives up the calls that wait for an answer of the store, because it may answer no more.
  package var reconnect: @Sendable () async -> Void
  /// Sends pending messages within the given time, and closes the connections to Kafka. It is the last step before the
  /// lease is given up.
  package var flush: @Sendable (_ limit: Duration) async -> Void

  package init(
    store: any TaskStore, leases: (any LeaseStore)? = nil, commands: any CommandSource, signals: any SignalSource,
    messages: any MessageSink,
    rounds: any RoundSink, progress: any MessageSink, handlers: HandlerTable,
    storage: Storage = Storage(roots: [:]), transfers: StorageRoots? = nil,
    hooks: (any HookSending)? = nil, tracer: Tracer? = nil,
    reconnect: @escaping @Sendable () async -> Void = {},
    flush: @escaping @Sendable (_ limit: Duration) async -> Void = { _ in }
  ) {
    self.store = store
    self.leases = leases ?? store
    self.commands = commands
    self.signals = signals
    self.messages = messages
    self.rounds = rounds
    self.progress = progress
    self.handlers = handlers
    self.storage = storage
    self.transfers = transfers
    self.hooks = hooks
    self.tracer = tracer
    self.reconnect = reconnect
    self.flush = flush
  }
}
