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

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: "\(name)Tests", dependencies: dependencies, swiftSettings: strict)
}

func library(_ name: String, pkgConfig: String, apt package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

let package = Package(
  name: "reelhaul",
  products: [
    .executable(name: "reelhaul", targets: ["reelhaul"]),
    .library(name: "ReelhaulClient", targets: ["ReelhaulClient"]),
  ],
  targets: [
    // C libraries, each imported by exactly one Swift module.
    .target(name: "CSystem"),
    library("CUV", pkgConfig: "libuv", apt: "libuv1-dev"),
    library("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    library("CRdKafka", pkgConfig: "rdkafka", apt: "librdkafka-dev"),
    library("CPostgres", pkgConfig: "libpq", apt: "libpq-dev"),
    library("CCrypto", pkgConfig: "libcrypto", apt: "libssl-dev"),

    // The SQL of the schema, embedded.
    .target(name: "CMigrations"),

    // The operating system and the libraries, as Swift.
    module("System", ["CSystem", "CUV"]),
    module("Digest", ["CCrypto"]),
    module("Curl", ["CCurl", "System"]),
    module("Kafka", ["CRdKafka", "System"]),
    module("Postgres", ["CPostgres", "System"]),
    module("Telemetry", ["TaskCore", "System"]),
    module("CommandLineKit", ["Codec", "System"]),

    // What a task is, and how it is written down.
    module("Codec"),
    module("TaskCore"),
    module("Messages", ["Codec", "TaskCore"]),

    // The fleet.
    module("TaskStore", ["TaskCore", "Messages", "Codec", "Postgres", "System", "CMigrations"]),
    module("TransferEngine", ["Codec", "TaskCore", "Curl", "Digest", "System"]),
    module(
      "Worker",
      ["TaskCore", "Messages", "TaskStore", "TransferEngine", "Kafka", "Postgres", "System", "Telemetry"]),
    module("ReelhaulClient", ["TaskCore", "Messages", "Kafka", "System"]),
    module("LocalFleet", ["Kafka", "Postgres", "System", "Telemetry"]),
    .executableTarget(
      name: "reelhaul",
      dependencies: [
        "CommandLineKit", "Codec", "TaskCore", "Messages", "TaskStore", "TransferEngine", "Worker", "ReelhaulClient",
        "LocalFleet", "Curl", "Digest", "Kafka", "Postgres", "System", "Telemetry",
      ], swiftSettings: strict),

    // Tests mirror Sources; TestKit starts the real parts: PostgreSQL, Apache Kafka, nginx, and origins that misbehave.
    .systemLibrary(name: "CTLS", path: "Tests/CTLS", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .target(name: "CResolver", path: "Tests/CResolver"),
    .target(
      name: "TestKit",
      dependencies: [
        "CTLS", "CResolver", "System", "Kafka", "Postgres", "LocalFleet", "ReelhaulClient", "TaskCore", "Messages",
        "TaskStore", "Digest",
      ],
      path: "Tests/TestKit", swiftSettings: strict),
    tests("System", ["System", "TestKit"]),
    tests("Digest", ["Digest", "Codec"]),
    tests("Curl", ["Curl", "System", "TestKit"]),
    tests("Kafka", ["Kafka", "LocalFleet", "System", "TestKit"]),
    tests("ReelhaulClient", ["ReelhaulClient", "TaskCore", "Messages", "Kafka"]),
    tests("Postgres", ["Postgres", "System", "LocalFleet", "TestKit"]),
    tests("Telemetry", ["Telemetry", "TaskCore", "System"]),
    tests("CommandLineKit", ["CommandLineKit", "Codec", "System"]),
    tests("Codec", ["Codec"]),
    tests("TaskCore", ["TaskCore"]),
    tests("Messages", ["Messages", "Codec", "TaskCore"]),
    tests("TaskStore", ["TaskStore", "TaskCore", "Messages", "Postgres", "LocalFleet", "System", "TestKit"]),
    tests("TransferEngine", ["TransferEngine", "TaskCore", "Curl", "Digest", "LocalFleet", "System", "TestKit"]),
    tests(
      "Worker",
      [
        "Worker", "TaskCore", "Messages", "TaskStore", "TransferEngine", "Kafka", "Postgres", "System", "Telemetry",
        "TestKit",
      ]),
    tests("LocalFleet", ["LocalFleet", "Kafka", "Postgres", "System", "TestKit"]),
    tests(
      "Reelhaul", ["reelhaul", "CommandLineKit", "TaskCore", "Messages", "TaskStore", "System", "Worker", "TestKit"]),
    tests(
      "Integration",
      [
        "reelhaul", "ReelhaulClient", "LocalFleet", "Codec", "TaskCore", "TaskStore", "Kafka", "Digest", "System",
        "TestKit",
      ]),
    tests(
      "Chaos",
      [
        "reelhaul", "ReelhaulClient", "LocalFleet", "TaskCore", "TaskStore", "Kafka", "Postgres", "Digest", "System",
        "TestKit",
      ]),
  ],
  swiftLanguageModes: [.v6]
)
