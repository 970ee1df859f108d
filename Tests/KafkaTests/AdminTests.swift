import Kafka
import Testing

@Suite struct AdminTests {
  @Test func tellsWhatTheClusterHas() async throws {
    try await withDevelopmentBroker(topics: TopicPlan(prefix: "x.").topics) { configuration in
      let admin = try KafkaAdmin(configuration)
      let metadata = try await admin.metadata()
      #expect(metadata.brokers.count == 1)
      #expect(metadata.topics["x.commands"] == 48)
      #expect(metadata.topics.count == 6)
      await admin.close()
      await #expect(throws: KafkaError.self) { try await admin.metadata() }
    }
  }

  @Test func makesTopicsByUseWhereTheBrokerHasNoAdminProtocol() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "old", partitions: 5)]) { configuration in
      let admin = try KafkaAdmin(configuration)
      let plan = [TopicSpec(name: "old", partitions: 5), TopicSpec(name: "new", partitions: 48)]
      let differences = try await admin.ensureTopics(plan)
      #expect(differences.map(\.description) == ["new: partitions is 4, planned 48"])
      await admin.close()
    }
  }

  @Test func saysInTimeThatNobodyAnswers() async throws {
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: "127.0.0.1:1"), timeout: .milliseconds(300))
    let error = await #expect(throws: KafkaError.self) { try await admin.metadata() }
    #expect(error?.isRetriable == true)
    await admin.close()
  }
}
