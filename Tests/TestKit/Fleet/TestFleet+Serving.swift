import Glibc
import ReelhaulSystem
import Testing

extension TestFleet {
  /// Runs `body` while `reelhaul serve` serves the fleet's API at the port that it gets.
  package func serving(_ body: (Int) async throws -> Void) async throws {
    var options = ChildProcess.Options()
    options.environment = environment
    options.stdout = "\(scratch)/serve.log"
    options.stderr = options.stdout
    options.signalOnParentDeath = SIGKILL
    let serve = try ChildProcess(TestFleet.binary, ["serve", "--port", "0"], options)
    var port = 0
    do {
      try await eventually("it serves") {
        let log = String(decoding: try TestFleet.contents("\(scratch)/serve.log"), as: UTF8.self)
        port = log.firstMatch(of: /http:..127.0.0.1:([0-9]+)/).flatMap { Int($0.1) } ?? 0
        return port > 0
      }
      try await body(port)
    } catch {
      serve.kill(SIGKILL)
      throw error
    }
    serve.kill(SIGTERM)
    #expect(await serve.wait() == .exited(0))
  }
}
