import TaskCore

/// What the HTTP API needs besides the roles of a fleet. A role of it reads or keeps what only operators and programs ask
/// for, so ``PostgresStore`` alone has them, and their tests run on a real PostgreSQL.
package protocol ControlStore: TaskStore, TaskCounter, FleetInspector, TokenStore, DetailReader,
  OperationStore, DeadLetterStore, SchemaStore
{
  /// The unusual events of a task, the oldest first. None are left once the task is removed.
  func history(of id: UniqueID) async throws -> [HistoryEntry]
  /// Asks the worker with this boot to end as on SIGTERM; its next renewal tells it. Returns false if it has no lease.
  func drain(_ boot: UniqueID) async throws -> Bool
}

extension PostgresStore: ControlStore {}

/// Knows the version of its schema.
package protocol SchemaStore: Sendable {
  /// Throws ``StoreError/schema(_:)`` or ``StoreError/otherSchema(_:)`` if the schema does not fit this program.
  func checkSchema() async throws
}
