import CReelhaulKafka
import ReelhaulClient
import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TestKit
import Testing

@Suite struct ReelhaulClientTests {
  @Test("commands arrive in order, with their task's id as key and with CloudEvents headers")
  func commandsArriveInOrderWithTheirTasksKeyAndCloudEventsHeaders() async throws {
    let plan = TopicPlan(prefix: "x.", partitions: 4)
    let broker = try DevelopmentBroker(topics: plan.topics)
    let reader = try await KafkaReader.open(
      KafkaConfiguration(bootstrap: broker.bootstrap), topics: [plan.commands], from: .beginning)
    let client = try ReelhaulClient.connect(bootstrap: broker.bootstrap, topicPrefix: "x.", source: "/test")
    let task = TaskSpec(id: .make(), kind: .download, source: "https://example.com/a.mp4", priority: 3)
    try await client.submit([task])
    let ids = (0..<6).map { _ in UniqueID.make() }
    try await client.pause(task.id, id: ids[0])
    try await client.resume(task.id, id: ids[1])
    try await client.prioritize(task.id, priority: -7, id: ids[2])
    try await client.retry(task.id, id: ids[3])
    try await client.cancel(task.id, id: ids[4])
    try await client.remove(task.id, id: ids[5])

    var records: [KafkaRecord] = []
    while records.count < 7, let next = try await reader.next() { records += next }
    #expect(Set(records.map(\.key)) == [Array(task.id.description.utf8)])
    #expect(records.first?.value == CommandJSON.encode(.submit(task)))
    let types = records.map { record in
      record.headers.first { $0.name == "ce_type" }.map { String(decoding: $0.value, as: UTF8.self) } ?? ""
    }
    let names = ["submit", "pause", "resume", "prioritize", "retry", "cancel", "remove"]
    #expect(types == names.map { "reelhaul.command.\($0)" })
    let submit = try #require(records.first).headers.map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }
    let headers = Dictionary(uniqueKeysWithValues: submit)
    #expect(headers["ce_id"] == task.id.description)
    // A command that is sent again with its id changes nothing.
    for (record, id) in zip(records.dropFirst(), ids) {
      let value = String(decoding: record.value ?? [], as: UTF8.self)
      #expect(value.contains(#""id":"\#(id)""#), "\(value)")
      #expect(record.headers.contains(KafkaHeader("ce_id", id.description)))
    }
    #expect(headers["ce_source"] == "/test")
    #expect(headers["ce_time"].flatMap(Timestamp.init) != nil)
    #expect(headers["content-type"] == "application/json")

    await client.close()
    await reader.close()
    await broker.close()
  }

  @Test("a client goes on after an error that ends its producer")
  func outlivesItsProducer() async throws {
    let cluster = MockCluster(topics: [TopicPlan().commands])
    defer { cluster.close() }
    let client = try ReelhaulClient.connect(bootstrap: cluster.bootstrap)
    let task = TaskSpec(id: .make(), kind: .noop, source: "")
    try await client.submit(task)
    // An idempotent producer ends when a broker has forgotten it.
    cluster.refusesNextWrite(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER)
    let error = await #expect(throws: ReelhaulClientError.self) { try await client.submit(task) }
    #expect(error?.isRetryable == true && error?.isFatal == false)
    try await client.submit(task)
    await client.close()
    let closed = await #expect(throws: ReelhaulClientError.self) { try await client.submit(task) }
    #expect(closed?.isRetryable == false && closed?.isFatal == true)
  }

  @Test("an error names the commands that did not arrive")
  func saysWhichCommandsDidNotArrive() async throws {
    let client = try ReelhaulClient.connect(bootstrap: "127.0.0.1:1", properties: ["message.timeout.ms": "200"])
    let tasks = (0..<3).map { _ in TaskSpec(id: .make(), kind: .noop, source: "") }
    let error = await #expect(throws: ReelhaulClientError.self) { try await client.submit(tasks) }
    #expect(error?.failures == [0, 1, 2])
    #expect(error?.isRetryable == true)
    await client.close()
  }

  @Test("an error says of each command why it did not arrive") func saysWhy() async throws {
    let broker = try DevelopmentBroker(topics: [TopicSpec(name: "reelhaul.commands", partitions: 1)])
    let client = try ReelhaulClient.connect(bootstrap: broker.bootstrap, properties: ["message.max.bytes": "2000"])
    let sources = ["", String(repeating: "x", count: 3000), ""]
    let tasks = sources.map { TaskSpec(id: .make(), kind: .noop, source: $0) }
    let error = await #expect(throws: ReelhaulClientError.self) { try await client.submit(tasks) }
    #expect(error?.failures == [1] && error?.causes[1]?.code == .messageTooLarge)
    #expect(error?.name == "MSG_SIZE_TOO_LARGE" && error?.isRetryable == false)
    await client.close()
    await broker.close()
  }

  @Test("a property that librdkafka does not know is refused")
  func refusesAPropertyThatDoesNotExist() {
    #expect(throws: ReelhaulClientError.self) {
      try ReelhaulClient.connect(bootstrap: "127.0.0.1:1", properties: ["no.such": "x"])
    }
  }

  @Test("ids of new tasks are different UUIDs of version 7")
  func idsOfNewTasksAreVersion7AndDiffer() {
    let ids = (0..<1000).map { _ in UniqueID.make() }
    #expect(Set(ids).count == ids.count)
    #expect(ids.allSatisfy { $0.high >> 12 & 0xF == 7 && $0.low >> 62 == 2 })
  }
}
