/// The replies to one request so far. A request is a batch of statements that ends with one Sync, or a script.
///
/// Replies are added in libpq's order. The exchange knows the statement of each reply, and when the server is done. A
/// batch is atomic: outside a transaction the server runs everything up to the Sync as one transaction.
struct Exchange<Rows> {
  /// The parts that were sent, in order.
  enum Step: Equatable {
    case prepare(name: String, statement: Int)
    case execute(statement: Int)
    case sync
    /// Several statements as text. The replies are any number of results and an end.
    case script
  }

  enum Reply {
    case rows(Rows)
    case failed(PostgresError)
    /// The server did not run this step, because an earlier one failed.
    case skipped
    case synced
    /// This step has no more results.
    case end
  }

  private let steps: [Step]
  private var next = 0
  private(set) var rows: [Rows] = []
  /// The first failure.
  private(set) var error: PostgresError?
  /// Prepared statements that the server has accepted, each with the index of its statement.
  private(set) var prepared: [(name: String, statement: Int)] = []

  init(_ steps: [Step]) {
    self.steps = steps
  }

  /// Whether every reply has arrived.
  var isComplete: Bool { next == steps.count }

  mutating func receive(_ reply: Reply) {
    guard next < steps.count else { return fail("a reply without a request") }
    switch (steps[next], reply) {
    case (.prepare(let name, let statement), .rows): prepared.append((name, statement))
    case (.execute, .rows(let rows)), (.script, .rows(let rows)): self.rows.append(rows)
    case (.prepare(_, let statement), .failed(var error)), (.execute(let statement), .failed(var error)):
      error.statementIndex = statement
      self.error = self.error ?? error
    case (.script, .failed(let error)), (.sync, .failed(let error)): self.error = self.error ?? error
    case (.prepare, .skipped), (.execute, .skipped): break
    case (.prepare, .end), (.execute, .end), (.script, .end), (.sync, .synced): next += 1
    case (.sync, .end): break
    default: fail("a reply out of order")
    }
  }

  private mutating func fail(_ message: String) {
    error = error ?? PostgresError(.protocol, message)
  }
}
