/// What one request to the server has brought so far: a batch of statements that ends with one Sync, or a script.
///
/// Replies go in in the order libpq hands them out; the exchange knows which statement each belongs to and when the
/// server is done. A batch is atomic: outside of a transaction the server runs it as one, up to the Sync.
struct Exchange<Rows> {
  /// What was sent, in order.
  enum Step: Equatable {
    case prepare(name: String, statement: Int)
    case execute(statement: Int)
    case sync
    /// Several statements as text; answered by any number of results and an end.
    case script
  }

  enum Reply {
    case rows(Rows)
    case failed(PostgresError)
    /// Not run, because an earlier step failed.
    case skipped
    case synced
    /// No more results of this step.
    case end
  }

  private let steps: [Step]
  private var next = 0
  private(set) var rows: [Rows] = []
  /// The first failure.
  private(set) var error: PostgresError?
  /// Prepared statements the server has accepted, with their statements' indices.
  private(set) var prepared: [(name: String, statement: Int)] = []

  init(_ steps: [Step]) {
    self.steps = steps
  }

  /// Every reply has come.
  var isComplete: Bool { next == steps.count }

  mutating func receive(_ reply: Reply) {
    guard next < steps.count else { return fail("an answer to nothing") }
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
    default: fail("an answer out of turn")
    }
  }

  private mutating func fail(_ message: String) {
    error = error ?? PostgresError(.protocol, message)
  }
}
