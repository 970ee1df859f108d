import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulSystem
import TaskStore
import TestKit
import Testing

/// Schemathesis (PyPI) sends what the served description allows and what it does not, and compares all answers with it.
/// `REELHAUL_SCHEMATHESIS` is how many examples of each operation; 5 otherwise.
@Suite struct DescriptionTrialTests {
  enum Holder: String, CaseIterable {
    case admin, write, read, foreign, expired, wrong, nobody
  }

  /// What a schema cannot say is answered with 422: which fields a kind needs, and what its URLs may be.
  private static let configuration = """
    [checks]
    positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "412", "422", "429", "503"]
    negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "414", "415", "422", "429"]
    # Nor does it say what a cursor is.
    [[operations]]
    include-name = "GET /v1/tasks"
    checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "400", "401", "403", "429", "503"]
    [[operations]]
    include-name = "GET /v1/dead-letters"
    checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "400", "401", "403", "429", "503"]
    [generation]
    allow-x00 = false
    """

  @Test(
    "no request, whoever sends it, gets an answer that the description does not have, or one of another's tasks",
    arguments: Holder.allCases) func conforms(holder: Holder) async throws
  {
    _ = try Peers.python()
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    // It sends many wrong ones.
    settings.wrongTokens = 1_000_000
    try await APIBench.run(settings) { bench in
      let mark = "mark-\(UniqueID.make())"
      let id = try await bench.add(to: "hidden", #", "labels": {"title": "\#(mark)"}"#)
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let url = "http://127.0.0.1:\(try await server.start())"
      let directory = try TemporaryDirectory(prefix: "schemathesis")
      try TextFile.write(Self.configuration, to: "\(directory.path)/schemathesis.toml")
      var arguments = [
        "--config-file", "\(directory.path)/schemathesis.toml", "--no-color", "run", "\(url)/openapi.json", "--checks",
        "all",
        "--phases", "examples,coverage,fuzzing,stateful", "--seed", "7", "--request-timeout", "60", "--warnings", "off",
        "--max-examples", ProcessEnvironment.all["REELHAUL_SCHEMATHESIS"] ?? "5", "--exclude-path-regex",
        "^/v1/(stream|events)$", "--continue-on-failure", "--report-har-path", "\(directory.path)/all.har",
        "--suppress-health-check", "all",
      ]
      if let token = try await Self.token(holder, bench) {
        arguments += ["--header", "Authorization: Bearer \(token)"]
      }
      let program = String(try Peers.python().dropLast("python".count)) + "schemathesis"
      let output = try await Task.detached { [arguments] in
        try ProgramOutput.run(program, arguments, limit: 64 << 20, timeout: .seconds(900))
      }.value
      // Its requests may be very long.
      let lines = String(decoding: output.output, as: UTF8.self).split(separator: "\n").map { $0.prefix(400) }
      #expect(
        output.status == .exited(0),
        "\(holder): \(lines.suffix(100).joined(separator: "\n")) \(String(decoding: output.errors, as: UTF8.self))")
      let isShown = holder == .admin || holder == .write || holder == .read
      if !isShown {
        let text = try TextFile.read("\(directory.path)/all.har", limit: 1 << 30)
        #expect(text.contains("entries") && !text.contains(mark) && !text.contains("\(id)"), "\(holder)")
      }
      await server.stop(within: .seconds(1))
    }
  }

  private static func token(_ holder: Holder, _ bench: APIBench) async throws -> String? {
    switch holder {
    case .admin: try await bench.token(.admin)
    case .write: try await bench.token(.write)
    case .read: try await bench.token(.read)
    case .foreign: try await bench.token(.admin, queues: ["elsewhere"])
    case .expired: try await bench.token(.admin, lifetime: .milliseconds(1))
    case .wrong: TokenSecret().text
    case .nobody: nil
    }
  }
}
