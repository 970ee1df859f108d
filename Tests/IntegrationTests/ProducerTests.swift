import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Commands from various producers, against real worker processes.
@Suite struct ProducerTests {
  @Test("a command from kcat becomes a finished download")
  func kcatIsAProducer() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    fleet.origin.serve("/kcat.mp4", OriginFile(seed: 1, size: 100_000))
    let id = UniqueID.make()
    let line = """
      {"command":"submit","task":{"id":"\(id)","kind":"download","source":"\(fleet.origin.url("/kcat.mp4"))",\
      "destination":"storage://default/kcat.mp4"}}
      """
    let kcat = try ChildProcess(
      "sh",
      [
        "-c", "printf '%s' \"$1\" | kcat -b \"$2\" -t \"$3\" -P", "kcat", line, fleet.bootstrap,
        "\(fleet.prefix)commands",
      ])
    #expect(await kcat.wait() == .exited(0))
    try await fleet.wait(for: id, .succeeded)
    await fleet.stop()
  }

  @Test("commands sent twice during a rebalance take effect once", .enabled(if: TestKafka.isAvailable))
  func duplicatesAndARebalanceChangeNothing() async throws {
    let kafka = try await TestKafka.shared()
    let fleet = try await TestFleet.start(workers: 1, broker: .running(kafka.bootstrap), leaseSeconds: 3)
    let specs = (0..<3000).map { _ in TaskSpec(id: .make(), kind: .noop, source: "noop://host/") }
    let client = fleet.client
    async let first: Void = client.submit(specs)
    // Two more members join while the first one reads, and one of them dies at once.
    try fleet.startWorker()
    let short = try fleet.startWorker()
    async let second: Void = client.submit(specs)
    _ = try await (first, second)
    short.kill(SIGKILL)
    try await fleet.waitForSuccess(of: specs.map(\.id))
    let counts = try await fleet.store.counts()
    #expect(counts[.succeeded] == specs.count)
    #expect(counts.values.reduce(0, +) == specs.count)
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
  }

  @Test("wrong commands become dead letters, and the others of the batch are applied")
  func badCommandsBecomeDeadLettersAndTheBatchAroundThemIsApplied() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let configuration = try KafkaConfiguration(bootstrap: fleet.bootstrap, properties: [:])
    let topics = TopicPlan(prefix: fleet.prefix)
    let reader = try await KafkaReader.open(configuration, topics: [topics.deadLetters], from: .beginning)
    let producer = try KafkaProducer(configuration)
    let good = TaskSpec(id: .make(), kind: .noop, source: "noop://host/")
    let bad = [
      "not JSON", "{}", "{\"command\":\"explode\",\"taskId\":\"\(UniqueID.make())\"}",
      "{\"command\":\"pause\",\"taskId\":\"\(UniqueID.make())\"}",
      "{\"command\":\"submit\",\"task\":{\"source\":\"file:///etc/passwd\"}}",
      "{\"command\":\"submit\",\"task\":{\"source\":\"http://h/a\",\"destination\":\"storage://default/../x\"}}",
    ]
    let key = Array("one partition".utf8)
    var messages = bad.map { KafkaMessage(topic: topics.commands, key: key, value: Array($0.utf8)) }
    messages.append(
      KafkaMessage(
        topic: topics.commands, key: key,
        value: Array(
          "{\"command\":\"submit\",\"task\":{\"kind\":\"noop\",\"id\":\"\(good.id)\",\"source\":\"noop://host/\"}}".utf8
        )))
    messages.swapAt(2, messages.count - 1)
    try await producer.sendAll(messages)
    try await fleet.wait(for: good.id, .succeeded)
    var letters: [KafkaRecord] = []
    while letters.count < bad.count, let records = try await reader.next() { letters += records }
    #expect(Set(letters.compactMap { $0.value.map { String(decoding: $0, as: UTF8.self) } }) == Set(bad))
    for letter in letters {
      let names = Set(letter.headers.map(\.name))
      #expect(names.isSuperset(of: ["dead-letter-reason", "dead-letter-code", "dead-letter-offset"]), "\(names)")
    }
    await reader.close()
    await producer.close()
    await fleet.stop()
  }
}
