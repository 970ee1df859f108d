import Glibc
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

@testable import LocalFleet

@Suite(.enabled(if: TestKafka.isAvailable), .timeLimit(.minutes(10)))
struct ApacheKafkaSlotTests {
  @Test("a killed Apache Kafka is started again with its port and its data")
  func isStartedAgainOnItsPortWithItsDataWhenItIsKilled() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-kafka")
    let home = try #require(TestKafka.home)
    let ports = (client: try LoopbackPort.free(), controller: try LoopbackPort.free())
    let node = try await ApacheKafka(home: home, directory: directory.path, ports: ports)
    let configuration = try KafkaConfiguration(bootstrap: node.bootstrap)
    let admin = try KafkaAdmin(configuration)
    _ = try await admin.ensureTopics([TopicSpec(name: "t", partitions: 1)])
    let producer = try KafkaProducer(configuration)
    try await producer.send(topic: "t", key: nil, value: Array("kept".utf8))

    let said = Lock<[String]>([])
    let slot = ProcessSlot(
      node, name: "Apache Kafka", logFile: node.logFile, say: { sentence in said.withLock { $0.append(sentence) } },
      restart: { try await ApacheKafka(home: home, directory: directory.path, ports: node.ports) })
    #expect(kill(try #require(await node.pid), SIGKILL) == 0)
    try await eventually("another node runs") { slot.process !== node }
    #expect(slot.process.bootstrap == node.bootstrap)
    try await producer.send(topic: "t", key: nil, value: Array("and went on".utf8))
    let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning)
    var values: [[UInt8]?] = []
    while values.count < 2, let records = try await reader.next() { values += records.map(\.value) }
    #expect(values == [Array("kept".utf8), Array("and went on".utf8)])
    #expect(said.withLock { $0 }.contains { $0.contains("Apache Kafka ended with signal 9") })
    await reader.close()
    await producer.close()
    await admin.close()
    await slot.stop { await $0.stop() }
    #expect(await slot.process.pid == nil)
  }
}
