/// What was built.
package enum Build {
  package static let version = "0.1.0"
}

extension MetricsSnapshot {
  /// Adds the version of this program and the number of the schema that it is for.
  package mutating func addBuild(version: String = Build.version, schema: Int) {
    add(
      MetricFamily("reelhaul_build_info", .gauge, labels: ["version", "schema"], help: "Always 1."),
      [([version, "\(schema)"], 1)])
  }
}
