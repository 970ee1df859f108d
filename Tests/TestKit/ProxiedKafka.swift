import LocalFleet
import ReelhaulSystem

/// An Apache Kafka for one test that can also be reached through a proxy.
package struct ProxiedKafka: Sendable {
  package let node: ApacheKafka
  package let proxy: CuttingProxy
  private let directory: TemporaryDirectory

  /// Bootstrap servers for clients whose connections must all pass the proxy.
  package var proxied: String { "127.0.0.1:\(proxy.port)" }

  package static func start() async throws -> ProxiedKafka {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let ports = try (client: LoopbackPort.free(), controller: LoopbackPort.free())
    let behind = try LoopbackPort.free()
    let proxy = try CuttingProxy(to: UInt16(behind))
    let node = try await TestKafka.start(
      in: directory.path, ports: ports,
      properties: [
        "listeners": "PLAINTEXT://127.0.0.1:\(ports.client),PROXIED://127.0.0.1:\(behind),"
          + "CONTROLLER://127.0.0.1:\(ports.controller)",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:\(ports.client),PROXIED://127.0.0.1:\(proxy.port)",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
      ])
    return ProxiedKafka(node: node, proxy: proxy, directory: directory)
  }

  package func stop() async {
    proxy.close()
    await node.stop()
  }
}
