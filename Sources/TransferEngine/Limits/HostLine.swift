import ReelhaulSystem

/// Whether a run stands in line: it waits for a connection to a server, and has none meanwhile.
///
/// ``HostConnections`` notes it for the run that ``current`` belongs to. Callable from any thread.
package final class HostLine: Sendable {
  /// Where a run is.
  package struct Place: Hashable, Sendable {
    /// The server (host:port) of its last connection, or of the one that it waits for; nil if there was none yet.
    package var server: String?
    package var isInLine: Bool

    package init(server: String? = nil, isInLine: Bool = false) {
      self.server = server
      self.isInLine = isInLine
    }
  }

  @TaskLocal package static var current: HostLine?

  private struct State {
    var held = 0
    var awaited = 0
    var server: String?
  }

  private let state = Lock(State())

  package init() {}

  package var place: Place {
    state.withLock { Place(server: $0.server, isInLine: $0.held == 0 && $0.awaited > 0) }
  }

  func took(_ server: String) {
    state.withLock { state in
      state.held += 1
      state.server = server
    }
  }

  func gaveBack() {
    state.withLock { $0.held -= 1 }
  }

  func waits(for server: String) {
    state.withLock { state in
      state.awaited += 1
      state.server = server
    }
  }

  func waited() {
    state.withLock { $0.awaited -= 1 }
  }
}
