import TaskCore

/// The server that tasks read from or write to.
package struct TaskServer: Hashable, Sendable {
  /// As limits know it: without a port.
  package var host: String
  /// `host:port`; for `s3://`, whose server only the workers' credentials know, `BUCKET.s3`.
  package var name: String

  package init(host: String, name: String) {
    self.host = host
    self.name = name
  }

  /// Nil for tasks whose failures tell nothing of one server: those of your own kinds, without a server, or with two.
  package init?(_ spec: TaskSpec) {
    let remote = [spec.source, spec.destination].compactMap(\.self).filter { !StorageURL.hasScheme($0.utf8) }
    guard spec.kind.isTransfer, remote.count == 1, let place = try? ResourceURL(remote[0]) else { return nil }
    host = LaneKey(spec).host
    switch place {
    case .web(let url): name = Self.name(of: url)
    case .tus(let url): name = Self.name(of: url.endpoint)
    case .s3: name = host
    case .storage: return nil
    }
  }

  private static func name(of url: WebURL) -> String {
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    return "\(host):\(url.port ?? (url.scheme == .http ? 80 : 443))"
  }

  /// Whether requests went to it; `server` is where the last one went. A redirect may have led elsewhere.
  package func isAt(_ server: String) -> Bool { name == host || name == server || name == server.lowercased() }
}

/// A failure of a task that its server may be the cause of.
package struct ServerFailure: Hashable, Sendable {
  package var server: TaskServer
  /// Whether the worker knows no other server of the host, so that a limit of the host keeps no task from one that serves.
  package var isWholeHost: Bool
  package var failure: TaskFailure
  /// Whether this worker knows that the server has served tasks and that it serves none now.
  package var isOut: Bool
  /// Nothing listens there; otherwise it may be at odds with some files.
  package var isUnreachable: Bool
  /// For how long it has served none.
  package var failing: Duration
  /// What serves again sooner was not out; `note_failures` (01_counters.sql) has it, too.
  package static let patience = Duration.seconds(5)

  package init(
    server: TaskServer, isWholeHost: Bool, failure: TaskFailure, isOut: Bool, isUnreachable: Bool, failing: Duration
  ) {
    self.server = server
    self.isWholeHost = isWholeHost
    self.failure = failure
    self.isOut = isOut
    self.isUnreachable = isUnreachable
    self.failing = failing
  }
}
