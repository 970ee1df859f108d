import TaskCore

/// What the HTTP API needs besides the roles of a fleet. A role of it reads or keeps what only operators and programs ask
/// for, so ``PostgresStore`` alone has them, and their tests run on a real PostgreSQL.
package protocol ControlStore: TaskStore, TaskFinder, TaskCounter, FleetInspector, TokenStore, DetailReader,
  OperationStore, HistoryStore, DrainStore, DeadLetterStore, SchemaStore
{}

extension PostgresStore: ControlStore {}

/// Knows the version of its schema.
package protocol SchemaStore: Sendable {
  /// Throws ``StoreError/schema(_:)`` or ``StoreError/otherSchema(_:)`` if the schema does not fit this program.
  func checkSchema() async throws
}

/// Finds tasks for operations on everything that fits a filter.
package protocol TaskFinder: Sendable {
  /// The ids of a page, as ``TaskReader/page(_:)`` finds it, looking at up to `most` tasks.
  func find(_ filter: TaskFilter, lookingAt most: Int) async throws -> TaskPage<UniqueID>
}
