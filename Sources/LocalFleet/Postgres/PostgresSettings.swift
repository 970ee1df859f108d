/// The server settings of a private cluster.
package struct PostgresSettings: Sendable {
  package var values: [(name: String, value: String)]

  /// For a fleet on one machine: frequent cheap vacuums, because the queue's tables change quickly. Durability is
  /// complete.
  package static let fleet = PostgresSettings(values: [
    ("autovacuum_naptime", "2s"),
    ("autovacuum_vacuum_cost_delay", "0"),
    ("wal_compression", "lz4"),
    ("max_wal_size", "8GB"),
    ("jit", "off"),
    // For 64 workers of 5, and commands.
    ("max_connections", "400"),
    ("shared_buffers", "256MB"),
    ("logging_collector", "off"),
    ("log_line_prefix", "%m [%p] "),
  ])

  /// For tests: like the fleet's, but a crash of the machine may lose data. A crash of the server alone does not.
  package static let test = PostgresSettings(
    values: fleet.values + [("fsync", "off"), ("shared_buffers", "64MB"), ("max_wal_size", "1GB")])

  /// The settings as arguments of the server. A later value overrides an earlier one.
  var arguments: [String] { values.flatMap { ["-c", "\($0.name)=\($0.value)"] } }
}
