// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

func reelhaul(_ product: String) -> Target.Dependency { .product(name: product, package: "reelhaul") }

let package = Package(
  name: "transcode",
  products: [
    .executable(name: "transcode-worker", targets: ["TranscodeWorker"]),
    .executable(name: "transcode-submit", targets: ["TranscodeSubmit"]),
  ],
  // The name lets the clone lie in a directory of any name.
  dependencies: [.package(name: "reelhaul", path: "../..")],
  targets: [
    // What producers and workers agree on: small, because every producer links it.
    .target(name: "TranscodeTask", dependencies: [reelhaul("ReelhaulTasks")], swiftSettings: strict),
    .target(
      name: "TranscodeHandler", dependencies: ["TranscodeTask", reelhaul("ReelhaulWorker")], swiftSettings: strict),
    .executableTarget(
      name: "TranscodeWorker", dependencies: ["TranscodeHandler", "TranscodeTask", reelhaul("ReelhaulWorker")],
      swiftSettings: strict),
    .executableTarget(
      name: "TranscodeSubmit", dependencies: ["TranscodeTask", reelhaul("ReelhaulTasks"), reelhaul("ReelhaulClient")],
      swiftSettings: strict),
    .testTarget(
      name: "TranscodeTests", dependencies: ["TranscodeHandler", "TranscodeTask", reelhaul("ReelhaulTestKit")],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
