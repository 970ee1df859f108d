import CommandLineKit
import ControlAPI
import OTLP
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore
import WorkerOptions

extension Subcommand {
  static let serve = Subcommand(
    CommandSpec(
      name: "serve", summary: "Serve the HTTP API and the dashboard",
      discussion: """
        The dashboard is at /, and the API below /v1; /openapi.json describes it. Commands go through Kafka, and tasks \
        are read from PostgreSQL. Unless told otherwise it listens on this machine only, and needs no tokens. With \
        --address it listens for others, and every request for data needs a token of 'reelhaul token create'. It speaks \
        HTTP: for HTTPS put a proxy in front of it, and name with --public-url where browsers find that.
        """,
      options: [.port] + OptionSpec.serving + [.logLevel] + OptionSpec.producing,
      examples: [
        Example("reelhaul serve --port 8080", "The dashboard at http://127.0.0.1:8080/"),
        Example("curl -s http://127.0.0.1:8080/v1/tasks?state=failed", "The failed tasks as JSON"),
        Example(
          "reelhaul serve --address 0.0.0.0 --public-url https://films.example/reelhaul --trusted-proxy 10.0.0.0/8",
          "For others, behind a proxy that speaks HTTPS"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let stop = StopSignal()
    let address = try ServeAddress(context.arguments)
    let log = Logger(level: context.arguments[.logLevel].flatMap { LogLevel(name: $0) } ?? .info)
    defer { log.close() }
    let telemetry = try FleetSettings.telemetry(context.arguments.settings).map {
      OTLPExporter($0, service: "reelhaul-serve", log: log)
    }
    let client = try Fleet.client(context.arguments)
    let (kafka, topics) = (try Fleet.kafka(context.arguments), try FleetSettings.topics(context.arguments))
    let postgres = try Fleet.postgres(context.arguments)
    try await PostgresPool.with(
      postgres,
      onOutage: {
        log.warning(
          "PostgreSQL cannot be reached; requests are refused until it can",
          ["server": .text(postgres.target), "error": .text("\($0)")])
      }
    ) { pool in
      let store = PostgresStore(pool: pool)
      do {
        try await ControlServer.serving(
          store, client, kafka, topics, ports: [Int(context.arguments.integer(.port) ?? 0)], at: address,
          telemetry: telemetry,
          log: log,
          onOutage: { error in
            if let error {
              log.warning("operations wait for PostgreSQL or Kafka", ["error": .text("\(error)")])
            } else {
              log.notice("operations go on")
            }
          }
        ) { place in
          context.note("The dashboard is at \(place)")
          if address.settings.requiresTokens, (try? await store.tokens().isEmpty) == true {
            context.note(
              "Every request for data needs a token, and there is none: make one with 'reelhaul token create'.")
          }
          await stop.wait()
        }
      } catch let error as SystemError {
        throw CommandFailure(.failed, "\(error)", hint: "Choose another port with --port, or another --address.")
      }
    }
    await client.close()
    return .done
  }
}

extension OptionSpec {
  static let port = OptionSpec(
    "port", .integer(0...65535), default: "\(ControlServer.port)", help: "The port; 0 takes any that is free")
}
