import ReelhaulPostgres
import ReelhaulSystem
import TaskCore

extension PostgresStore: TokenStore {
  private static let columns = "id, name, scope, queues, parent, created_at, expires_at, last_used_at"

  private static let create = PostgresStatement(
    "select \(columns) from create_token($1, $2, $3, $4, $5)", writes: true)
  private static let createSession = PostgresStatement(
    "select \(columns) from create_session($1, $2, $3, $4)", writes: true)
  private static let use = PostgresStatement("select \(columns) from use_token($1)", writes: true)
  private static let list = PostgresStatement(
    """
    select \(columns) from api_token where parent is null and (expires_at is null or expires_at > now()) order by name
    """)
  private static let revoke = PostgresStatement("select \(columns) from revoke_token($1)", writes: true)
  private static let end = PostgresStatement(
    "delete from api_token where id = $1 and parent is not null", writes: true)

  package func createToken(_ token: NewToken) async throws -> APIToken? {
    try await one(
      Self.create, .text(token.name), .text(token.scope.rawValue),
      token.queues.map { .textArray($0.sorted()) } ?? .null(.textArray), .int64(token.lifetime?.microseconds),
      .bytea(token.hash))
  }

  package func createSession(of parent: UniqueID, hash: [UInt8], lifetime: Duration) async throws -> APIToken? {
    try await one(
      Self.createSession, .id(parent), .bytea(hash), .int64(lifetime.microseconds),
      .int32(Int32(APIToken.mostSessions)))
  }

  package func token(hash: [UInt8]) async throws -> APIToken? { try await one(Self.use, .bytea(hash)) }

  package func tokens() async throws -> [APIToken] {
    try await call { try await pool.query(Self.list).decode(token) }
  }

  package func revokeToken(_ nameOrID: String) async throws -> APIToken? {
    try await one(Self.revoke, .text(nameOrID))
  }

  package func endSession(_ id: UniqueID) async throws {
    try await run(Self.end(.id(id)))
  }

  private func one(_ statement: PostgresStatement, _ values: PostgresValue...) async throws -> APIToken? {
    try await call { try await pool.pipeline([PostgresQuery(statement, values)])[0].decode(token).first }
  }

  private func token(_ columns: PostgresColumns) throws -> (PostgresRow) throws -> APIToken {
    let (id, name, scope) = (try columns["id"], try columns["name"], try columns["scope"])
    let (queues, parent) = (try columns["queues"], try columns["parent"])
    let (created, expires) = (try columns["created_at"], try columns["expires_at"])
    let used = try columns["last_used_at"]
    return { row in
      APIToken(
        id: try row.id(id), name: try row.text(name), scope: try row.known(scope),
        queues: try row[queues] == nil ? nil : Set(row.texts(queues)), createdAt: try row.time(created),
        expiresAt: try row.optionalTime(expires), lastUsedAt: try row.optionalTime(used),
        parent: try row[parent].map { UniqueID(try $0.uuid()) })
    }
  }
}
