// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "follow",
  products: [.executable(name: "follow", targets: ["Follow"])],
  // The name lets the clone lie in a directory of any name.
  dependencies: [.package(name: "reelhaul", path: "../..")],
  targets: [
    .executableTarget(
      name: "Follow", dependencies: [.product(name: "ReelhaulHTTPClient", package: "reelhaul")],
      swiftSettings: [.treatAllWarnings(as: .error)])
  ],
  swiftLanguageModes: [.v6]
)
