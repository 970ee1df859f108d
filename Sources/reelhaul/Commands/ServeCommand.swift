import CommandLineKit
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskStore
import WorkerOptions

extension Subcommand {
  static let serve = Subcommand(
    CommandSpec(
      name: "serve", summary: "Serve the HTTP API and the dashboard",
      discussion: """
        The dashboard is at /, and the API below /v1; /v1/openapi.json describes it. Commands go through Kafka, and tasks \
        are read from PostgreSQL. Anybody who reaches the port can do everything, so it listens only on this machine. For \
        others put a proxy in front of it that knows who they are, and name with --name the host that it is called by.
        """,
      options: [.port, .hostNames] + OptionSpec.producing,
      examples: [
        Example("reelhaul serve --port 8080", "The dashboard at http://127.0.0.1:8080/"),
        Example("curl -s http://127.0.0.1:8080/v1/tasks?state=failed", "The failed tasks as JSON"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage))
  ) { context in
    let stop = StopSignal()
    let client = try Fleet.client(context.arguments)
    let (kafka, topics) = (try Fleet.kafka(context.arguments), try FleetSettings.topics(context.arguments))
    try await Fleet.withStore(context) { store in
      do {
        try await ControlServer.serving(
          store, client, kafka, topics, ports: [Int(context.arguments.integer(.port) ?? 0)],
          names: try hostNames(context.arguments.all(.hostNames))
        ) { address in
          context.note("The dashboard is at \(address)")
          await stop.wait()
        }
      } catch let error as SystemError {
        throw CommandFailure(.failed, "\(error)", hint: "Choose another port with --port.")
      }
    }
    await client.close()
    return .done
  }
}

/// As browsers send them in `Host`, less the port.
private func hostNames(_ names: [String]) throws -> Set<String> {
  for name in names where !name.hasPrefix("[") && name.contains(where: { ":/ ".contains($0) }) || name.isEmpty {
    throw CommandFailure(.usage, "\"\(name)\" is no host name: give it without scheme, port and path")
  }
  return Set(names.map { $0.lowercased() })
}

extension OptionSpec {
  static let port = OptionSpec(
    "port", .integer(0...65535), default: "\(ControlServer.port)",
    help: "The port on 127.0.0.1; 0 takes any that is free")
  static let hostNames = OptionSpec(
    "name", .text, valueName: "HOST", repeatable: true, help: "A host name by which a proxy calls it")
}
