import LocalFleet
import ReelhaulPostgres
import ReelhaulSystem

/// One private PostgreSQL per test process, with a new database for every caller; and separate clusters for tests that
/// crash them.
///
///     let url = try await TestPostgres.shared.database()
package final class TestPostgres: Sendable {
  package static let shared = TestPostgres()

  private let starting = Lock<Task<EmbeddedPostgres, any Error>?>(nil)
  private let lastDatabase = Lock(0)
  /// The owner of the databases. Like most owners, it is no superuser.
  private static let owner = "owner"

  private init() {}

  /// The shared server. The first call starts it.
  package func server() async throws -> EmbeddedPostgres {
    let task = starting.withLock { task in
      if let task { return task }
      let new = Task {
        let directory = try TemporaryDirectory.make(prefix: "reelhaul-postgres")
        let server = try await EmbeddedPostgres.start(
          directory: directory, port: LoopbackPort.free(), authentication: .trust, settings: .test)
        atTestExit {
          server.stopBlocking(.immediate)
          removeTree(directory)
        }
        try await Self.asSuperuser(of: server) { try await $0.script("CREATE ROLE \(Self.owner) LOGIN") }
        return server
      }
      task = new
      return new
    }
    return try await task.value
  }

  /// The URL of a new, empty database on the shared server.
  ///
  /// - Parameter options: of the statement `CREATE DATABASE`.
  package func database(_ options: String = "") async throws -> String {
    let server = try await server()
    let name = lastDatabase.withLock { last in
      last += 1
      return "test_\(last)"
    }
    try await asSuperuser { try await $0.script("CREATE DATABASE \(name) OWNER \(Self.owner) \(options)") }
    return server.url(database: name, role: Self.owner)
  }

  /// Runs `body` on a connection of a superuser of the shared server.
  @discardableResult
  package func asSuperuser<Result: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) async throws -> Result
  ) async throws -> Result {
    try await Self.asSuperuser(of: server(), body)
  }

  @discardableResult
  private static func asSuperuser<Result: Sendable>(
    of server: EmbeddedPostgres, _ body: @escaping @Sendable (PostgresConnection) async throws -> Result
  ) async throws -> Result {
    try await PostgresPool.with(.patient(url: server.url(database: "postgres"))) { pool in
      try await pool.withConnection { try await body($0) }
    }
  }
}

extension PostgresConfiguration {
  /// For a test's own queries, with more patience than the product has.
  package static func patient(url: String) throws -> PostgresConfiguration {
    var configuration = try PostgresConfiguration(url: url)
    configuration.connectTimeout = .seconds(60)
    configuration.acquireTimeout = .seconds(120)
    configuration.statementTimeout = .seconds(300)
    return configuration
  }
}

/// A cluster for one test, which can be crashed and started again on the same port.
package actor RestartablePostgres {
  private let directory: String
  private let port: Int
  private var server: EmbeddedPostgres

  package init() async throws {
    directory = try TemporaryDirectory.make(prefix: "reelhaul-postgres")
    port = try LoopbackPort.free()
    server = try await EmbeddedPostgres.start(
      directory: directory, port: port, authentication: .trust, settings: .test)
    let path = directory
    atTestExit { removeTree(path) }
  }

  package var url: String { server.url() }

  package func stop(_ how: EmbeddedPostgres.Stop = .immediate) async {
    await server.stop(how)
  }

  package func start() async throws {
    server = try await EmbeddedPostgres.start(
      directory: directory, port: port, authentication: .trust, settings: .test)
  }

  /// For the end of a test: stops the cluster and removes its files.
  package func remove() async {
    await server.stop(.immediate)
    removeTree(directory)
  }
}
