import Testing

@testable import ReelhaulKafka

@Suite struct TopicPlanTests {
  @Test(
    "a prefix that Kafka accepts is accepted",
    arguments: ["", "reelhaul.", "A-b_9.", String(repeating: "x", count: 249 - "dead-letters".count)])
  func takesAPrefixThatKafkaTakes(prefix: String) throws {
    #expect(try TopicPlan(checking: prefix).prefix == prefix)
  }

  @Test(
    "a prefix that Kafka would refuse is refused with the reason",
    arguments: [
      ("a b", "characters"), ("a/", "characters"), ("café.", "characters"), ("a\n", "characters"),
      (String(repeating: "x", count: 240), "3 characters too long"),
    ])
  func refusesAnyOther(prefix: String, reason: String) {
    let error = #expect(throws: KafkaError.self) { try TopicPlan(checking: prefix) }
    #expect(error?.code == .invalidArgument)
    #expect(error?.message.contains("the topic prefix") == true)
    #expect(error?.message.contains(reason) == true)
  }

  @Test("two fleets of one cluster have no name in common") func names() {
    let names = [TopicPlan(prefix: "a."), TopicPlan(prefix: "b.")].map {
      Set($0.topics.map(\.name) + [$0.group, $0.relay])
    }
    #expect(names[0].isDisjoint(with: names[1]) && names.allSatisfy { $0.count == 8 }, "\(names)")
  }

  @Test("records have the time of the broker, so that no producer's clock decides how long they are kept")
  func theBrokersClockCounts() {
    #expect(TopicPlan().topics.allSatisfy { $0.settings["message.timestamp.type"] == "LogAppendTime" })
  }

  @Test("a topic has three copies on three or more brokers")
  func aTopicHasThreeCopiesWhereThereAreThreeBrokers() {
    let topic = TopicSpec(name: "t", partitions: 1, settings: ["retention.ms": "1"])
    #expect(topic.replicated(over: 1).replicas == 1)
    #expect(topic.replicated(over: 1).settings == topic.settings)
    #expect(topic.replicated(over: 2).replicas == 2)
    #expect(topic.replicated(over: 5).replicas == 3)
    #expect(topic.replicated(over: 5).settings == ["retention.ms": "1", "min.insync.replicas": "2"])
    let chosen = TopicSpec(name: "t", partitions: 1, replicas: 2, settings: [:])
    #expect(chosen.replicated(over: 5) == chosen)
  }

  @Test("fewer replicas than planned are a difference, and more are not")
  func fewerReplicasThanPlannedAreADifference() {
    let topic = TopicSpec(name: "t", partitions: 1).replicated(over: 3)
    let differences = TopicDifference.compare(topic, partitions: 1, replicas: 1, settings: ["min.insync.replicas": "1"])
    #expect(
      differences.map(\.description) == ["t: replicas is 1, planned 3", "t: min.insync.replicas is 1, planned 2"])
    #expect(
      TopicDifference.compare(topic, partitions: 1, replicas: 4, settings: ["min.insync.replicas": "2"]) == [])
  }
}
