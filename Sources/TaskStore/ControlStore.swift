/// What the HTTP API needs besides the roles of a fleet. A role of it reads or keeps what only operators and programs ask
/// for, so ``PostgresStore`` alone has them, and their tests run on a real PostgreSQL.
package protocol ControlStore: TaskStore, TokenStore, DetailReader, OperationStore, HistoryStore, DrainStore,
  DeadLetterStore
{}

extension PostgresStore: ControlStore {}
