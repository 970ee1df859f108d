import ReelhaulKafka

/// Creates the fleet's topics.
struct TopicMigration {
  private let kafka: KafkaConfiguration
  private let plan: TopicPlan

  init(_ kafka: KafkaConfiguration, _ plan: TopicPlan) {
    self.kafka = kafka
    self.plan = plan
  }

  @discardableResult
  func run(isDry: Bool = false) async throws -> TopicsReport {
    try await KafkaAdmin.with(kafka) { try await run($0, isDry: isDry) }
  }

  private func run(_ admin: KafkaAdmin, isDry: Bool) async throws -> TopicsReport {
    let present = try await admin.metadata().topics
    let isComplete = plan.topics.allSatisfy { present[$0.name] != nil }
    let (created, differences) =
      try await isDry ? ([], admin.differences(plan.topics)) : admin.ensureTopics(plan.topics)
    let made = isDry || isComplete ? present : try await admin.metadata().topics
    return TopicsReport(
      topics: plan.topics.map { topic in
        TopicsReport.Topic(
          name: topic.name, partitions: made[topic.name] ?? topic.partitions,
          status: created.contains(topic.name)
            ? .created : isDry && present[topic.name] == nil ? .pending : .unchanged,
          differences: differences.filter { $0.topic == topic.name })
      })
  }
}
