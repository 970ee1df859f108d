import CommandLineKit
import ReelhaulPostgres
import WorkerOptions

/// Detects the addresses of an earlier `up`: a new start has other ports, but shells and files may still have the old
/// ones.
enum FormerFleet {
  /// What to do if nobody answers; nil if the service's address comes from a flag, or is not on this machine.
  static func hint(_ service: OptionSpec, _ arguments: Arguments) -> String? {
    guard let key = service.environment, let address = arguments.given(service), arguments.settings[key] == address,
      isLoopback(service == .postgres ? (try? PostgresConfiguration(url: address))?.target ?? "" : address)
    else { return nil }
    return "If 'reelhaul up' was started again, its ports have changed: source its reelhaul.env again."
  }

  /// Whether all addresses in `HOST:PORT,…`, with or without a path, are on this machine.
  private static func isLoopback(_ servers: String) -> Bool {
    let servers = servers.split(separator: ",")
    return !servers.isEmpty
      && servers.allSatisfy { server in ["127.", "localhost:", "[::1]:", "::1:"].contains { server.hasPrefix($0) } }
  }
}
