import ReelhaulKafka

/// Creates the fleet's topics.
struct TopicMigration {
  private let kafka: KafkaConfiguration
  private let plan: TopicPlan

  init(_ kafka: KafkaConfiguration, _ plan: TopicPlan) {
    self.kafka = kafka
    self.plan = plan
  }

  func run(isDry: Bool = false, say: (String) -> Void) async throws {
    let admin = try KafkaAdmin(kafka)
    do {
      try await run(admin, isDry: isDry, say: say)
    } catch {
      await admin.close()
      throw error
    }
    await admin.close()
  }

  private func run(_ admin: KafkaAdmin, isDry: Bool, say: (String) -> Void) async throws {
    let present = try await admin.metadata().topics
    let missing = plan.topics.filter { present[$0.name] == nil }
    let differences = try await isDry ? admin.differences(plan.topics) : admin.ensureTopics(plan.topics)
    let made = isDry || missing.isEmpty ? [:] : try await admin.metadata().topics
    for topic in missing {
      let partitions = made[topic.name] ?? topic.partitions
      say("topic \(topic.name): \(isDry ? "is to be made" : "made"), with \(partitions) partitions")
    }
    for difference in differences { say("topic \(difference)") }
    if missing.isEmpty { say("topics: all there") }
  }
}
