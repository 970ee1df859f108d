import ReelhaulTelemetry
import TransferEngine

/// The parts of the worker that handlers may use.
package struct HandlerServices: Sendable {
  package let roots: StorageRoots
  package let log: Logger

  package init(roots: StorageRoots, log: Logger) {
    self.roots = roots
    self.log = log
  }
}

/// The kinds of task that a worker carries out. **This is the line of wiring for a new built-in kind.**
package struct WorkerKinds: Sendable {
  package typealias Make = @Sendable (HandlerServices) -> [any KindHandler]

  /// The handlers that every worker has, unless it is configured otherwise.
  package static let builtIn: Make = { services in
    [
      DownloadHandler(roots: services.roots),
      UploadHandler(roots: services.roots),
      CopyHandler(roots: services.roots),
      DeleteHandler(roots: services.roots),
      NoopHandler(),
    ]
  }

  private let makes: [Make]

  /// - Parameter more: Makes the handlers for kinds of your own.
  package init(builtIn: Bool = true, more: Make? = nil) {
    makes = (builtIn ? [Self.builtIn] : []) + (more.map { [$0] } ?? [])
  }

  /// Throws ``DuplicateKind``.
  package func table(_ services: HandlerServices) throws(DuplicateKind) -> HandlerTable {
    try HandlerTable(makes.flatMap { $0(services) })
  }
}
