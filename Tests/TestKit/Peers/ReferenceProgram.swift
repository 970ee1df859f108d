import LocalFleet
import ReelhaulCodec

/// The programs of `Tests/Reference` whose libraries take long to import. One server per test process runs them.
enum ReferenceProgram {
  private static let server = Task {
    try await PeerProcess.start("python", environment: ["AWS_CONFIG_FILE": "/dev/null"]) { ports, _ in
      [PeerProcess.script("server.py"), "\(ports[0])"]
    }
  }

  /// Runs a program to its end and returns the lines that it printed. Throws if it fails.
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) async throws -> [String] {
    let call = JSONWriter.write { writer in
      writer.object { writer in
        writer.name("arguments")
        writer.array { writer in
          for argument in arguments { writer.string(argument) }
        }
        writer.name("environment")
        writer.object { writer in
          for (name, value) in environment {
            writer.name(name)
            writer.string(value)
          }
        }
      }
    }
    let url = try await server.value.url("/\(program)")
    let answer = try await CurlCommand.run("--data-binary", String(decoding: call, as: UTF8.self), url)
    guard answer.status == 200 else { throw TestFleetError("\(program) \(arguments): \(answer.exit) \(answer.text)") }
    return answer.text.split(separator: "\n").map(String.init)
  }
}
