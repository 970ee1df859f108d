import ReelhaulCodec

/// The statements that one session has prepared. A name stands for the text and the types of the parameters, so it has
/// the same meaning on every connection.
struct StatementCache {
  /// How a query is to be sent.
  enum Plan: Equatable {
    case execute(name: String)
    case prepare(name: String)
    /// The server parses the statement for this execution only.
    case unnamed
  }

  /// More than any program has. It bounds the server's memory if statements are made at run time.
  static let limit = 512

  private let isEnabled: Bool
  private var texts: [String: String] = [:]
  /// A part of the names. So a statement that is prepared again has a new name, and behind a PgBouncer that shares
  /// server sessions it does not collide with the name from another connection.
  private var generation: UInt32

  init(isEnabled: Bool, generation: UInt32 = 0) {
    self.isEnabled = isEnabled
    self.generation = generation
  }

  func plan(for query: PostgresQuery) -> Plan {
    guard isEnabled else { return .unnamed }
    let name = name(of: query)
    if let text = texts[name] { return text == query.statement.sql ? .execute(name: name) : .unnamed }
    return texts.count < Self.limit ? .prepare(name: name) : .unnamed
  }

  mutating func didPrepare(_ name: String, _ statement: PostgresStatement) {
    texts[name] = statement.sql
  }

  /// The server has lost the statements, or their plans can no longer be used.
  mutating func forgetAll() {
    texts.removeAll()
    generation &+= 1
  }

  private func name(of query: PostgresQuery) -> String {
    var hash = FNV1a()
    hash.combine(query.statement.hash)
    for value in query.values { hash.combine(UInt64(value.type.oid)) }
    return "rh_\(String(hash.value, radix: 16))_\(String(generation, radix: 16))"
  }
}
