import TaskCore
import TaskStore

/// Does nothing and succeeds, to measure everything around the work.
package struct NoopHandler: KindHandler {
  package let kind = TaskKind.noop

  package init() {}

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    .succeeded(sha256: nil, bytes: 0)
  }
}
