import ReelhaulSystem

/// A whole fleet on this machine: broker, database and worker processes. All of them end with this process.
///
/// If it is started again with the same data directory, it continues with the same data.
package final class LocalFleet: Sendable {
  package let layout: FleetLayout
  /// The environment that programs need to reach the fleet, and workers to join it.
  package let environment: [String: String]
  package let workers: [WorkerSlot]
  private let services: FleetServices
  private let lock: FleetLock

  private init(
    layout: FleetLayout, environment: [String: String], workers: [WorkerSlot], services: FleetServices, lock: FleetLock
  ) {
    self.layout = layout
    self.environment = environment
    self.workers = workers
    self.services = services
    self.lock = lock
  }

  /// Starts the services, lets `prepare` create schema and topics, then starts the workers.
  ///
  /// - Parameters:
  ///   - prepare: receives the workers' environment, which overrides this process's.
  ///   - say: receives a sentence for everything that happens, now and later.
  package static func start(
    _ options: FleetOptions, prepare: @Sendable ([String: String]) async throws -> Void,
    say: @escaping @Sendable (String) -> Void
  ) async throws -> LocalFleet {
    let layout = options.layout
    for directory in [layout.root, layout.storage, layout.logs] { try makeDirectories(directory) }
    let lock = try FleetLock(layout)
    // A fleet that was killed may have left the file.
    layout.removeEnvironmentFile()
    let services = try await FleetServices.start(options, say)
    let environment = environment(options, services)
    let own = ["REELHAUL_LABELS": "", "REELHAUL_CONFIG": "", "REELHAUL_INIT_STORAGE": ""]
    let settings = [environment, options.workerSettings, own].reduce(options.givenSettings) { settings, next in
      settings.merging(next) { $1 }
    }
    var workers: [WorkerSlot] = []
    var failure: (any Error)?
    do {
      try await prepare(settings)
      for index in 0..<options.workers {
        let name = "worker-\(index + 1)"
        try workers.append(
          WorkerSlot(
            worker: name, executable: options.executable,
            environment: settings.merging(["REELHAUL_LABELS": "name=\(name)"]) { $1 },
            logFile: layout.log(of: name), say: say))
      }
    } catch {
      failure = error
    }
    let fleet = LocalFleet(
      layout: layout, environment: environment, workers: workers, services: services, lock: lock)
    guard let failure else { return fleet }
    await fleet.stop()
    throw failure
  }

  /// Whether commands that no worker has applied survive ``stop(within:)``.
  package var keepsCommands: Bool { !services.isDevelopment }

  /// Whether workers share the commands by their leases, within a moment of each change.
  package var dealsCommands: Bool { services.isDevelopment }

  /// Drains the workers, then stops the services.
  ///
  /// - Parameter drained: runs between the two.
  package func stop(within limit: Duration = .seconds(30), drained: () async -> Void = {}) async {
    layout.removeEnvironmentFile()
    await withTaskGroup(of: Void.self) { group in
      for worker in workers { group.addTask { await worker.stop(within: limit) } }
    }
    await drained()
    await services.stop()
  }

  private static func environment(_ options: FleetOptions, _ services: FleetServices) -> [String: String] {
    let own = [
      "REELHAUL_KAFKA": services.bootstrap,
      "REELHAUL_POSTGRES": services.postgresURL,
      "REELHAUL_TOPIC_PREFIX": options.topicPrefix,
      // Also for workers that a user starts: all of them must share in the same way.
      "REELHAUL_DEAL_COMMANDS": services.isDevelopment ? "1" : "",
      "REELHAUL_STORAGE": "default=\(options.layout.storage)",
      // This machine is allowed for local origins, but no other private network.
      "REELHAUL_ALLOW_NETWORKS": "127.0.0.0/8,::1/128",
    ]
    return own.merging(options.unset.map { ($0, "") }) { own, _ in own }
  }
}
