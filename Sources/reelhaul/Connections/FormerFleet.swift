import CommandLineKit
import ReelhaulPostgres

/// A fleet of `up` that was started again has other ports, and shells and files may have the former ones.
enum FormerFleet {
  /// What to do where nobody answers; nil where the service's address is from a flag, or not on this machine.
  static func hint(_ service: OptionSpec, _ arguments: Arguments) -> String? {
    guard let key = service.environment, let address = arguments.given(service), arguments.settings[key] == address,
      isLoopback(service == .postgres ? (try? PostgresConfiguration(url: address))?.target ?? "" : address)
    else { return nil }
    return "If 'reelhaul up' was started again, its ports have changed: source its reelhaul.env again."
  }

  /// Whether all of `HOST:PORT,…`, with or without a path, are on this machine.
  private static func isLoopback(_ servers: String) -> Bool {
    let servers = servers.split(separator: ",")
    return !servers.isEmpty
      && servers.allSatisfy { server in ["127.", "localhost:", "[::1]:", "::1:"].contains { server.hasPrefix($0) } }
  }
}
