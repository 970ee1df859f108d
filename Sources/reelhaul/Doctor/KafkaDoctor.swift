import CommandLineKit
import ReelhaulKafka
import TaskAdvice
import WorkerOptions

/// Checks the broker and the topics.
struct KafkaDoctor {
  let arguments: Arguments
  /// Nil if the topic prefix is invalid.
  let plan: TopicPlan?

  func examine() async -> [Finding] {
    let configuration: KafkaConfiguration
    do {
      configuration = try Fleet.kafka(arguments)
    } catch {
      let failure = CommandFailure(error)
      return [Finding("broker", failure, advice: failure.hint)]
    }
    do {
      return try await KafkaAdmin.with(configuration, timeout: .seconds(5), patience: .seconds(5)) {
        await examine($0, configuration)
      }
    } catch {
      return [Finding("broker", CommandFailure(error), advice: "Correct the REELHAUL_KAFKA_… settings.")]
    }
  }

  private func examine(_ admin: KafkaAdmin, _ configuration: KafkaConfiguration) async -> [Finding] {
    let metadata: ClusterMetadata
    do {
      metadata = try await admin.metadata()
    } catch {
      return [
        Finding(
          "broker", .unreachable, "\(configuration.bootstrap): \(error)",
          advice: [
            "Check that Kafka runs there, and that TLS and SASL match its settings (REELHAUL_KAFKA_SECURITY_PROTOCOL …).",
            FormerFleet.hint(.kafka, arguments),
          ].compactMap(\.self).joined(separator: " "))
      ]
    }
    let brokers = Finding(
      "broker", .ok, "\(metadata.brokers) at \(configuration.bootstrap)")
    guard let plan else { return [brokers] }
    let topics = topics(plan.topics, metadata)
    guard topics.status != .failed else { return [brokers, topics] }
    async let settings = settings(plan.topics, admin)
    async let commands = commands(plan, configuration)
    return await [brokers, topics] + settings + commands
  }

  /// Whether commands wait to be applied. If some do, it looks again after a while, because commands that are being
  /// applied are no problem.
  private func commands(_ plan: TopicPlan, _ configuration: KafkaConfiguration) async -> [Finding] {
    do throws(KafkaError) {
      let observer = try GroupObserver(configuration, group: plan.group, topic: plan.commands)
      var positions = [try await observer.position()]
      if positions[0].unread > 0 {
        try? await Task.sleep(for: Self.patience)
        positions.append(try await observer.position())
      }
      return Self.commands(positions)
    } catch {
      return [Self.unread("commands", "the number of waiting commands", error)]
    }
  }

  /// `positions` are those of the workers' group, earlier ones first.
  static func commands(_ positions: [GroupObserver.Position]) -> [Finding] {
    var findings: [Finding] = []
    if let lost = positions.last?.lost, lost > 0 {
      findings.append(
        Finding(
          "commands", .warning, "\(lost) were dropped from Kafka, and no worker is known to have read them",
          advice: "Send again what is missing. Kafka keeps commands for the retention.ms of their topic."))
    }
    guard let last = positions.last, last.unread > 0 else {
      return findings.isEmpty ? [Finding("commands", .ok, "all are applied")] : findings
    }
    return findings + [waiting(last, since: positions[0])]
  }

  private static func waiting(_ last: GroupObserver.Position, since first: GroupObserver.Position) -> Finding {
    guard last.committed == first.committed else {
      return Finding("commands", .ok, "\(last.unread) wait, and workers apply them")
    }
    return Finding(
      "commands", .warning,
      "\(last.unread) wait, and the workers have applied none for \(DurationText.brief(patience))",
      advice: "Check in the workers' logs whether they reach Kafka and PostgreSQL. After a worker has joined, ended "
        + "or died, the commands are assigned again, which takes up to about 15 seconds.")
  }

  private static let patience = Duration.seconds(2)

  /// How the topics' settings differ from the plan. Empty if they do not, or if the broker does not report them.
  private func settings(_ plan: [TopicSpec], _ admin: KafkaAdmin) async -> [Finding] {
    do throws(KafkaError) {
      let differences = try await admin.differences(plan).filter { $0.setting != "partitions" }
      guard !differences.isEmpty else { return [] }
      return [
        Finding(
          "topics", .warning, differences.map(\.description).joined(separator: "; "),
          advice: "Set them as planned with kafka-configs.sh --alter, unless the difference is intended.")
      ]
    } catch {
      return [Self.unread("topics", "their settings", error)]
    }
  }

  /// For what could not be read. Only a refusal says nothing of the cluster, whose brokers may answer and yet serve
  /// nothing.
  static func unread(_ check: String, _ what: String, _ error: KafkaError) -> Finding {
    Finding(
      check, error.isRefusal ? .skipped : error.isRetryable ? .unreachable : .failed,
      "\(what) cannot be read: \(error)",
      advice: error.isRetryable ? "Check that enough of the cluster's brokers run." : nil)
  }

  private func topics(_ plan: [TopicSpec], _ metadata: ClusterMetadata) -> Finding {
    let missing = plan.filter { metadata.topics[$0.name] == nil }.map(\.name)
    guard missing.isEmpty else {
      return Finding(
        "topics", .failed, "missing, or hidden from this user: \(missing.joined(separator: ", "))",
        advice: "Create them with 'reelhaul migrate', or grant this user the right to describe them.")
    }
    let few = plan.filter { metadata.topics[$0.name, default: 0] < $0.partitions }
    guard few.isEmpty else {
      let list = few.map {
        "\($0.name) has \(metadata.topics[$0.name, default: 0]) partitions, planned \($0.partitions)"
      }
      return Finding(
        "topics", .warning, list.joined(separator: "; "),
        advice: "Fewer partitions only limit how many workers share the commands.")
    }
    return Finding("topics", .ok, "all \(plan.count) exist")
  }
}
