import ReelhaulSystem

/// Whether a run stands in line: it waits for a connection to a host, and has none meanwhile.
///
/// ``HostConnections`` notes it for the run that ``current`` belongs to. Callable from any thread.
package final class HostLine: Sendable {
  @TaskLocal package static var current: HostLine?

  private let connections = Lock((held: 0, awaited: 0))

  package init() {}

  package var isInLine: Bool { connections.withLock { $0.held == 0 && $0.awaited > 0 } }

  func took() {
    connections.withLock { $0.held += 1 }
  }

  func gaveBack() {
    connections.withLock { $0.held -= 1 }
  }

  func waits() {
    connections.withLock { $0.awaited += 1 }
  }

  func waited() {
    connections.withLock { $0.awaited -= 1 }
  }
}
