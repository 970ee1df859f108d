import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import TestKit

/// Runs `body` with a pool on a new loop, by default with a new database. Both must close without leaving anything
/// open.
func withPool<Result: Sendable>(
  size: Int = 2, _ configuration: PostgresConfiguration? = nil,
  _ body: @escaping @Sendable (PostgresPool) async throws -> Result
) async throws -> Result {
  let configuration =
    if let configuration { configuration } else {
      try PostgresConfiguration.patient(url: try await TestPostgres.shared.database())
    }
  let loop = EventLoop(name: "postgres-test")
  let pool = PostgresPool(loop: loop, configuration: configuration, size: size)
  let result = await loop.task { try await body(pool) }.result
  await pool.close()
  loop.shutdown()
  return try result.get()
}

/// The error `body` throws, or nil.
func failure(_ body: () async throws -> Void) async -> PostgresError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? PostgresError
  }
}

/// Runs `body` while libpq knows the services of `file`. These tests run one at a time.
func withServices(_ file: String, _ body: () async throws -> Void) async throws {
  let directory = try TemporaryDirectory()
  let path = "\(directory.path)/pg_service.conf"
  let descriptor = try FileDescriptor.open(path, O_WRONLY | O_CREAT)
  try descriptor.write(file, at: 0)
  setenv("PGSERVICEFILE", path, 1)
  defer { unsetenv("PGSERVICEFILE") }
  try await body()
}
