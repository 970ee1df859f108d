import TaskCore
import TaskStore

/// What carries out the tasks of one kind.
package protocol TaskHandler: Sendable {
  var kind: TaskKind { get }

  /// Carries out one run. Canceled, it records what it has, stops touching anything and returns
  /// ``RunOutcome/stopped``, soon; the same when the ledger throws.
  func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome
}
