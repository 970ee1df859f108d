import ReelhaulSystem

extension PostgresPool {
  private enum Ending<Result> {
    case committed(Result)
    case unknown(Result, transactionID: String?, PostgresError)
  }

  /// Runs `body` in a transaction, which is committed when `body` returns and rolled back when it throws.
  ///
  /// If the connection is lost during COMMIT, another connection asks the server about the transaction. If it was
  /// applied, this call returns normally. If not, it throws ``PostgresError/Code/connection``. It throws
  /// ``PostgresError/Code/commitUnknown`` only if the server does not answer.
  ///
  /// For work that cannot simply be repeated, such as migrations. The calls of the store can be repeated, and are
  /// single statements.
  package func transaction<Result>(
    isolation: isolated (any Actor)? = #isolation,
    level: PostgresTransaction.Level = .readCommitted,
    _ body: (PostgresTransaction) async throws -> Result
  ) async throws -> Result {
    let ending: Ending<Result> = try await withConnection { connection in
      let transaction = PostgresTransaction(connection, level: level)
      let result: Result
      do {
        result = try await body(transaction)
      } catch {
        await transaction.rollback()
        throw error
      }
      do {
        try await transaction.commit()
        return .committed(result)
      } catch let error as PostgresError where error.code == .commitUnknown {
        return .unknown(result, transactionID: await transaction.transactionID, error)
      }
    }
    switch ending {
    case .committed(let result): return result
    case .unknown(let result, let id, let error):
      try await resolve(transactionID: id, error)
      return result
    }
  }

  /// Returns only if the transaction was applied.
  private func resolve(transactionID: String?, _ error: PostgresError) async throws(PostgresError) {
    var lost = error
    lost.code = .connection
    guard let transactionID else { throw lost }  // the transaction had written nothing
    // In a separate task, so that cancellation of the caller does not lose the answer.
    let status = await Task(executorPreference: loop) { await self.status(of: transactionID) }.value
    switch status {
    case .committed: return
    case .aborted:
      lost.message = "the connection was lost during COMMIT, and the transaction was not applied: \(error.message)"
      throw lost
    case .inProgress, .forgotten: throw error
    }
  }

  private func status(of transactionID: String) async -> CommitStatus {
    let end = BootInstant.now + configuration.commitResolution
    while !end.hasPassed {
      do {
        let status = try CommitStatus(try await query(CommitStatus.statement, .text(transactionID)))
        if status != .inProgress { return status }
      } catch {
        guard error.isRetryable else { return .forgotten }
      }
      do { try await loop.sleep(for: .milliseconds(50)) } catch { return .inProgress }
    }
    return .inProgress
  }
}
