import ReelhaulKafka
import Testing

@Suite struct AdminTests {
  @Test("the metadata counts brokers and lists topics, and a closed client throws")
  func tellsWhatTheClusterHas() async throws {
    try await withDevelopmentBroker(topics: TopicPlan(prefix: "x.").topics) { configuration in
      let admin = try KafkaAdmin(configuration)
      let metadata = try await admin.metadata()
      #expect(metadata.brokers == 1)
      #expect(metadata.topics["x.commands"] == 48)
      #expect(metadata.topics.count == 6)
      await admin.close()
      await #expect(throws: KafkaError.self) { try await admin.metadata() }
    }
  }

  @Test("on a broker without the admin protocol, topics are created by use and differences are reported")
  func makesTopicsByUseWhereTheBrokerHasNoAdminProtocol() async throws {
    try await withDevelopmentBroker(topics: [TopicSpec(name: "old", partitions: 5)]) { configuration in
      let admin = try KafkaAdmin(configuration)
      let plan = [TopicSpec(name: "old", partitions: 5), TopicSpec(name: "new", partitions: 48)]
      let differences = try await admin.ensureTopics(plan).differences
      #expect(differences.map(\.description) == ["new: partitions is 4, planned 48"])
      await admin.close()
    }
  }

  @Test("a cluster that does not answer is a retryable error within the timeout")
  func saysInTimeThatNobodyAnswers() async throws {
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: "127.0.0.1:1"), timeout: .milliseconds(300))
    let error = await #expect(throws: KafkaError.self) { try await admin.metadata() }
    #expect(error?.isRetryable == true)
    await admin.close()
  }

  /// The asked node may learn of a new topic after the node that created it.
  @Test("creating topics waits until the asked node knows them, and creates them once")
  func waitsUntilTheSettingsOfNewTopicsAreKnown() async throws {
    let node = try ScriptedNode(unknownFor: 3)
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: "127.0.0.1:\(node.port)"))
    #expect(try await admin.ensureTopics([TopicSpec(name: "new", partitions: 1, replicas: 1)]).differences == [])
    #expect(node.asked.count { $0 == .createTopics } == 1)
    #expect(node.asked.count { $0 == .describeConfigs } == 4)
    await admin.close()
    node.close()
  }

  @Test("creating topics waits for another controller if the first has gone", arguments: [2, -1])
  func asksAnotherControllerWhereTheFirstIsGone(absent: Int) async throws {
    let node = try ScriptedNode(absentControllerFor: 5, absentController: absent)
    // A request without an answer in this time is sent again. It also waits so long for a controller that is not there.
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: "127.0.0.1:\(node.port)"), timeout: .seconds(2))
    #expect(try await admin.ensureTopics([TopicSpec(name: "new", partitions: 1, replicas: 1)]).differences == [])
    #expect(node.asked.filter { $0 != .metadata } == [.createTopics, .describeConfigs])
    #expect(node.asked.firstIndex(of: .createTopics) ?? 0 > 5)
    await admin.close()
    node.close()
  }

  @Test("creating topics gives up when its patience ends")
  func itsPatienceEnds() async throws {
    let node = try ScriptedNode(unknownFor: .max)
    let admin = try KafkaAdmin(
      KafkaConfiguration(bootstrap: "127.0.0.1:\(node.port)"), patience: .milliseconds(200))
    let error = await #expect(throws: KafkaError.self) {
      try await admin.ensureTopics([TopicSpec(name: "new", partitions: 1, replicas: 1)])
    }
    #expect(error?.name == "UNKNOWN_TOPIC_OR_PART")
    await admin.close()
    node.close()
  }
}
