import Testing

@testable import LocalFleet

@Suite struct ApacheKafkaConfigurationTests {
  @Test("a node listens only on loopback and keeps its data in the given directory")
  func listensOnLoopbackAloneAndKeepsItsDataWhereItIsTold() {
    let configuration = ApacheKafkaConfiguration(
      dataDirectory: "/data", port: 4001, controllerPort: 4002,
      extra: ["num.partitions": "7", "min.insync.replicas": "2"])
    let lines = configuration.properties.split(separator: "\n").map(String.init)
    #expect(lines.contains("listeners=PLAINTEXT://127.0.0.1:4001,CONTROLLER://127.0.0.1:4002"))
    #expect(lines.contains("controller.quorum.voters=1@127.0.0.1:4002"))
    #expect(lines.contains("log.dirs=/data"))
    #expect(lines.contains("num.partitions=7"))
    #expect(lines.filter { $0.hasPrefix("min.insync.replicas=") } == ["min.insync.replicas=2"])
  }

  @Test("a missing distribution is reported with KAFKA_HOME")
  func saysWhatIsMissing() async {
    let error = await #expect(throws: LocalFleetError.self) {
      _ = try await ApacheKafka(home: "/nowhere", directory: "/nowhere/data")
    }
    #expect(error?.description.contains("KAFKA_HOME") == true)
  }
}
