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
    let admin = try KafkaAdmin(kafka)
    do {
      let report = try await run(admin, isDry: isDry)
      await admin.close()
      return report
    } catch {
      await admin.close()
      throw error
    }
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
