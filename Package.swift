// swift-tools-version: 6.2
import PackageDescription

// Dependencies point down and inwards, and this manifest is where that is enforced: a module can import
// only what its line names (deploy/test.sh builds with --explicit-target-dependency-import-check error).

let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(name: "\(name)Tests", dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

func library(_ name: String, pkgConfig: String, apt package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
  name: "reelhaul",
  products: [
    .executable(name: "reelhaul", targets: ["reelhaul"]),
    .library(name: "ReelhaulTasks", targets: ["ReelhaulTasks"]),
    .library(name: "ReelhaulWorker", targets: ["ReelhaulWorker"]),
    .library(name: "ReelhaulTestKit", targets: ["ReelhaulTestKit"]),
    .library(name: "ReelhaulClient", targets: ["ReelhaulClient"]),
    .library(name: "ReelhaulHTTPClient", targets: ["ReelhaulHTTPClient"]),
  ],
  targets: [
    // C libraries, each imported by exactly one Swift module.
    .target(name: "CReelhaulSystem"),
    // The parser llhttp, from the sources of Debian's node-llhttp.
    .target(name: "CReelhaulHTTP"),
    library("CReelhaulUV", pkgConfig: "libuv", apt: "libuv1-dev"),
    library("CReelhaulCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    library("CReelhaulKafka", pkgConfig: "rdkafka", apt: "librdkafka-dev"),
    library("CReelhaulPostgres", pkgConfig: "libpq", apt: "libpq-dev"),
    library("CReelhaulZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
    library("CReelhaulCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),

    // The SQL of the schema, embedded.
    .target(name: "CReelhaulSchema"),

    // The operating system and the libraries, as Swift.
    module("ReelhaulSystem", ["CReelhaulSystem", "CReelhaulUV"]),
    module("ReelhaulDigest", ["CReelhaulCrypto"]),
    module("ReelhaulCurl", ["CReelhaulCurl", "ReelhaulSystem"]),
    module("ReelhaulKafka", ["CReelhaulKafka", "ReelhaulSystem"]),
    module("ReelhaulPostgres", ["CReelhaulPostgres", "ReelhaulCodec", "ReelhaulSystem"]),
    module("HTTPServer", ["CReelhaulHTTP", "CReelhaulZlib", "ReelhaulCodec", "ReelhaulSystem"]),
    module("ReelhaulTelemetry", ["TaskCore", "ReelhaulSystem"]),
    // Spans and metrics to a receiver of the OpenTelemetry protocol.
    module("OTLP", ["TaskCore", "ReelhaulCodec", "ReelhaulCurl", "ReelhaulSystem", "ReelhaulTelemetry"]),
    module("CommandLineKit", ["ReelhaulCodec", "ReelhaulSystem"]),

    // What a task is, and how it is written down.
    module("ReelhaulCodec"),
    module("TaskCore"),
    module("ReelhaulMessages", ["ReelhaulCodec", "TaskCore"]),

    // What producers and workers of a kind of somebody's own agree on.
    module("ReelhaulTasks", ["ReelhaulCodec", "TaskCore", "ReelhaulMessages"]),

    // For apps and services that reach the fleet over HTTP. It needs Foundation only.
    module("ReelhaulHTTPClient"),

    // The fleet.
    module(
      "TaskStore",
      ["TaskCore", "ReelhaulMessages", "ReelhaulCodec", "ReelhaulPostgres", "ReelhaulSystem", "CReelhaulSchema"]),
    module(
      "TransferEngine",
      [
        "ReelhaulCodec", "ReelhaulMessages", "TaskCore", "ReelhaulCurl", "ReelhaulDigest", "ReelhaulSystem",
        "ReelhaulTelemetry",
      ]),
    module(
      "WorkerCore",
      [
        "TaskCore", "ReelhaulCodec", "ReelhaulMessages", "TaskStore", "TransferEngine", "ReelhaulKafka",
        "ReelhaulPostgres",
        "HTTPServer", "OTLP", "ReelhaulSystem", "ReelhaulTelemetry",
      ]),
    module(
      "WorkerOptions",
      [
        "CommandLineKit", "OTLP", "WorkerCore", "TransferEngine", "ReelhaulKafka", "ReelhaulPostgres",
        "ReelhaulTelemetry",
        "ReelhaulSystem",
      ]),
    module(
      "ReelhaulWorker",
      [
        "WorkerOptions", "CommandLineKit",
        "ReelhaulTasks", "WorkerCore", "TransferEngine", "TaskStore", "TaskCore", "ReelhaulCodec", "ReelhaulMessages",
        "ReelhaulTelemetry", "ReelhaulSystem",
      ]),
    // For tests: no module that a program links may name it.
    module("MemoryTaskStore", ["TaskStore", "TaskCore", "ReelhaulSystem"]),
    module(
      "ReelhaulTestKit",
      [
        "ReelhaulWorker", "ReelhaulTasks", "WorkerCore", "TransferEngine", "MemoryTaskStore", "TaskStore", "TaskCore",
        "ReelhaulCodec", "ReelhaulTelemetry", "ReelhaulSystem",
      ]),
    // What the command line and the API tell about a task besides its document.
    module(
      "TaskAdvice",
      ["TaskCore", "ReelhaulCodec", "ReelhaulMessages", "TaskStore", "TransferEngine", "ReelhaulSystem"]),
    .target(name: "CReelhaulDashboard"),
    module(
      "ControlAPI",
      [
        "HTTPServer", "TaskAdvice", "ReelhaulClient", "ReelhaulKafka", "TaskStore", "TaskCore", "ReelhaulMessages",
        "ReelhaulCodec", "ReelhaulDigest", "ReelhaulSystem", "ReelhaulTelemetry", "CReelhaulDashboard",
      ]),
    module("ReelhaulClient", ["TaskCore", "ReelhaulMessages", "ReelhaulKafka", "ReelhaulSystem"]),
    module("LocalFleet", ["ReelhaulKafka", "ReelhaulPostgres", "ReelhaulSystem", "ReelhaulTelemetry"]),
    module(
      "Bench",
      [
        "CommandLineKit", "ReelhaulCodec", "TaskCore", "TaskStore", "TransferEngine", "ReelhaulClient", "LocalFleet",
        "ReelhaulKafka", "ReelhaulPostgres", "ReelhaulSystem",
      ]),
    module(
      "Demo",
      [
        "CommandLineKit", "ReelhaulCodec", "TaskCore", "TaskStore", "ReelhaulClient", "LocalFleet", "ReelhaulDigest",
        "ReelhaulKafka", "ReelhaulPostgres", "ReelhaulSystem",
      ]),
    .executableTarget(
      name: "reelhaul",
      dependencies: [
        "Bench", "Demo", "CommandLineKit", "ReelhaulCodec", "TaskCore", "ReelhaulMessages", "TaskStore",
        "TaskAdvice", "ControlAPI", "HTTPServer", "TransferEngine", "WorkerOptions", "WorkerCore", "ReelhaulClient",
        "LocalFleet", "OTLP", "ReelhaulKafka", "ReelhaulPostgres",
        "ReelhaulSystem", "ReelhaulTelemetry",
      ], swiftSettings: strict),

    // Tests mirror Sources; TestKit starts the real parts: PostgreSQL, Apache Kafka, nginx, stores of others, and origins
    // and a store that misbehave.
    .systemLibrary(name: "CTLS", path: "Tests/CTLS", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .target(name: "CResolver", path: "Tests/CResolver"),
    .target(name: "CDisk", path: "Tests/CDisk"),
    .target(name: "CStore", path: "Tests/CStore"),
    .executableTarget(
      name: "HandlerWorker", dependencies: ["ReelhaulWorker"], path: "Tests/HandlerWorker", swiftSettings: strict),
    .target(
      name: "TestKit",
      dependencies: [
        "CTLS", "CResolver", "CDisk", "CStore", "HTTPServer", "ReelhaulCodec", "ReelhaulSystem", "ReelhaulKafka",
        "ReelhaulPostgres", "LocalFleet",
        "ReelhaulClient",
        "TaskCore", "ReelhaulMessages",
        "TaskStore", "ReelhaulDigest",
      ],
      path: "Tests/TestKit", swiftSettings: strict),
    tests("Store", ["TestKit", "LocalFleet", "ReelhaulDigest", "ReelhaulSystem"]),
    tests("System", ["ReelhaulSystem", "TestKit"]),
    tests("Digest", ["ReelhaulDigest", "ReelhaulCodec"]),
    tests("Curl", ["ReelhaulCurl", "ReelhaulSystem", "TestKit"]),
    tests("Kafka", ["ReelhaulKafka", "LocalFleet", "ReelhaulSystem", "TestKit"]),
    tests("ReelhaulHTTPClient", ["ReelhaulHTTPClient", "HTTPServer", "ReelhaulCodec", "ReelhaulSystem", "TestKit"]),
    tests("HTTPServer", ["HTTPServer", "ReelhaulSystem", "TestKit"]),
    tests(
      "ControlAPI",
      [
        "ControlAPI", "HTTPServer", "LocalFleet", "ReelhaulKafka", "ReelhaulMessages", "ReelhaulPostgres",
        "ReelhaulClient",
        "ReelhaulCodec", "ReelhaulSystem", "TaskCore", "TaskStore", "TestKit",
      ]),
    tests("ReelhaulClient", ["ReelhaulClient", "TaskCore", "ReelhaulMessages", "ReelhaulKafka", "TestKit"]),
    tests("Postgres", ["ReelhaulPostgres", "ReelhaulSystem", "LocalFleet", "TestKit"]),
    tests("Telemetry", ["ReelhaulTelemetry", "TaskCore", "ReelhaulSystem", "TestKit"]),
    tests("OTLP", ["OTLP", "HTTPServer", "TaskCore", "ReelhaulSystem", "ReelhaulTelemetry", "TestKit"]),
    tests("CommandLineKit", ["CommandLineKit", "ReelhaulCodec", "ReelhaulSystem"]),
    tests("Codec", ["ReelhaulCodec"]),
    tests("TaskCore", ["TaskCore", "ReelhaulSystem"]),
    tests("Messages", ["ReelhaulMessages", "ReelhaulCodec", "ReelhaulSystem", "TaskCore", "TestKit"]),
    tests(
      "TaskStore",
      [
        "MemoryTaskStore", "TaskStore", "TaskCore", "TransferEngine", "ReelhaulMessages", "ReelhaulPostgres",
        "LocalFleet", "ReelhaulSystem",
        "TestKit",
      ], exclude: ["Resources"]),
    tests(
      "TransferEngine",
      [
        "TransferEngine", "TaskCore", "ReelhaulCodec", "ReelhaulCurl", "ReelhaulDigest", "ReelhaulMessages",
        "LocalFleet",
        "ReelhaulSystem", "ReelhaulTelemetry", "TestKit",
      ], exclude: ["Resources"]),
    tests(
      "Worker",
      [
        "WorkerCore", "TaskCore", "ReelhaulMessages", "MemoryTaskStore", "TaskStore", "TransferEngine",
        "HTTPServer", "ReelhaulKafka", "ReelhaulPostgres", "ReelhaulSystem", "ReelhaulTelemetry", "TestKit",
      ]),
    tests(
      "ReelhaulWorker",
      [
        "ReelhaulWorker", "ReelhaulTestKit", "ReelhaulTasks", "HandlerWorker", "WorkerCore", "TransferEngine",
        "TaskStore", "TaskCore", "ReelhaulMessages", "ReelhaulClient", "ReelhaulKafka", "ReelhaulPostgres",
        "ReelhaulSystem", "ReelhaulTelemetry", "TestKit",
      ]),
    tests("LocalFleet", ["LocalFleet", "ReelhaulKafka", "ReelhaulPostgres", "ReelhaulSystem", "TestKit"]),
    tests("Demo", ["Demo", "TaskCore"]),
    tests(
      "Reelhaul",
      [
        "reelhaul", "CommandLineKit", "TaskAdvice", "TaskCore", "ReelhaulMessages", "MemoryTaskStore", "TaskStore",
        "ReelhaulSystem", "WorkerCore", "TransferEngine",
        "TestKit",
      ]),
    tests(
      "Integration",
      [
        "reelhaul", "ReelhaulClient", "LocalFleet", "ReelhaulCodec", "TaskCore", "TaskStore", "ReelhaulKafka",
        "ReelhaulDigest", "ReelhaulSystem",
        "TestKit", "ReelhaulPostgres",
      ]),
    tests(
      "Chaos",
      [
        "reelhaul", "ReelhaulClient", "LocalFleet", "ReelhaulCodec", "ReelhaulMessages", "TaskCore", "TaskStore",
        "ReelhaulKafka", "ReelhaulPostgres",
        "ReelhaulDigest", "ReelhaulSystem",
        "TestKit",
      ]),
  ],
  swiftLanguageModes: [.v6]
)
