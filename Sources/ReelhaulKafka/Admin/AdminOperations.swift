import CReelhaulKafka
import ReelhaulSystem

/// The blocking part of ``KafkaAdmin``. It runs on one thread.
struct AdminOperations: Sendable {
  let handle: KafkaHandle
  /// The limit for one request.
  let milliseconds: Int32
  let patience: Duration

  func metadata() throws(KafkaError) -> ClusterMetadata {
    try patiently { () throws(KafkaError) in try ask() }
  }

  func ensure(_ plan: [TopicSpec]) throws(KafkaError) -> (created: Set<String>, differences: [TopicDifference]) {
    let start = BootInstant.now
    let cluster = try metadata()
    let plan = plan.map { $0.replicated(over: cluster.brokers) }
    let missing = plan.filter { cluster.topics[$0.name] == nil }
    var created: Set<String> = []
    if !missing.isEmpty {
      try patiently(since: start) { () throws(KafkaError) in
        // The metadata is asked for again, because the controller may have changed.
        _ = try ask()
        if hasAdminProtocol {
          try create(missing, &created)
        } else {
          try createByUse(missing)
          created = Set(missing.map(\.name))
        }
      }
    }
    let differences = try patiently(since: start) { () throws(KafkaError) in
      let cluster = try ask()
      // Not all brokers know new topics at once.
      guard missing.allSatisfy({ cluster.topics[$0.name] != nil }) else {
        throw KafkaError(
          code: KafkaError.Code(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
          message: "the new topics cannot be seen: this user may lack the right to describe them",
          isRetryable: !(start + patience).hasPassed)
      }
      return try self.differences(plan, cluster)
    }
    return (created, differences)
  }

  /// How the existing topics differ from the plan.
  func differences(_ plan: [TopicSpec]) throws(KafkaError) -> [TopicDifference] {
    try patiently { () throws(KafkaError) in
      let cluster = try ask()
      let existing = plan.filter { cluster.topics[$0.name] != nil }
      return try differences(existing.map { $0.replicated(over: cluster.brokers) }, cluster)
    }
  }

  /// Calls `body` again after failures that may pass: within the time of one request, and within the whole patience
  /// once the cluster has answered.
  private func patiently<Result>(
    since start: BootInstant = .now, _ body: () throws(KafkaError) -> Result
  ) throws(KafkaError) -> Result {
    try handle.retrying(
      until: start.advanced(by: handle.hasAnswered ? patience : .milliseconds(Int(milliseconds))), body)
  }

  private func ask() throws(KafkaError) -> ClusterMetadata {
    let answer: Result<ClusterMetadata, KafkaError>
    do throws(KafkaError) {
      answer = .success(try ClusterMetadata.ask(handle.raw, milliseconds: milliseconds))
    } catch {
      answer = .failure(error)
    }
    handle.drain()
    if case .success = answer { handle.recovered() }
    return try answer.mapError { $0.because(of: handle.trouble) }.get()
  }

  private func differences(_ plan: [TopicSpec], _ cluster: ClusterMetadata) throws(KafkaError) -> [TopicDifference] {
    let settings = hasAdminProtocol ? try settings(of: plan.map(\.name)) : nil
    return plan.flatMap {
      TopicDifference.compare(
        $0, partitions: cluster.topics[$0.name] ?? 0, replicas: cluster.replicas[$0.name], settings: settings?[$0.name])
    }
  }

  /// The development broker never answers requests of the admin protocol. Its cluster's id tells it; that of any other
  /// cluster, which may lack a controller for a moment, is a random one.
  private var hasAdminProtocol: Bool {
    guard let id = rd_kafka_clusterid(handle.raw, 0) else { return true }
    defer { rd_kafka_mem_free(handle.raw, id) }
    return !String(cString: id).hasPrefix("mockCluster")
  }

  /// Adds the names of the topics that did not exist to `created`.
  private func create(_ topics: [TopicSpec], _ created: inout Set<String>) throws(KafkaError) {
    var requests: [OpaquePointer?] = []
    defer { for request in requests { rd_kafka_NewTopic_destroy(request) } }
    for topic in topics {
      let replicas = Int32(clamping: topic.replicas ?? 1)
      guard let request = rd_kafka_NewTopic_new(topic.name, Int32(clamping: topic.partitions), replicas, nil, 0) else {
        throw KafkaError(code: .invalidArgument, message: "topic \(topic.name) cannot be created with these settings")
      }
      requests.append(request)
      for (name, value) in topic.settings { rd_kafka_NewTopic_set_config(request, name, value) }
    }
    let event = try perform(RD_KAFKA_ADMIN_OP_CREATETOPICS, RD_KAFKA_EVENT_CREATETOPICS_RESULT) { options in
      rd_kafka_CreateTopics(handle.raw, &requests, requests.count, options, handle.answers)
    }
    try Self.check(event, &created)
  }

  private static func check(_ event: borrowing KafkaEvent, _ created: inout Set<String>) throws(KafkaError) {
    var (count, failure): (Int, KafkaError?) = (0, nil)
    let results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.raw), &count)
    for index in 0..<count {
      let result = results?[index]
      let code = rd_kafka_topic_result_error(result)
      if code == RD_KAFKA_RESP_ERR_NO_ERROR { created.insert(String(cString: rd_kafka_topic_result_name(result))) }
      guard code != RD_KAFKA_RESP_ERR_NO_ERROR, code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS else { continue }
      let name = String(cString: rd_kafka_topic_result_name(result))
      let reason = rd_kafka_topic_result_error_string(result).map { String(cString: $0) } ?? ""
      failure = failure ?? KafkaError(code: .init(code), message: "topic \(name) was not created: \(reason)")
    }
    if let failure { throw failure }
  }

  /// For brokers without the admin protocol: asking for a topic creates it, with the broker's own settings.
  private func createByUse(_ topics: [TopicSpec]) throws(KafkaError) {
    for topic in topics {
      guard let reference = rd_kafka_topic_new(handle.raw, topic.name, nil) else {
        throw KafkaError(code: .invalidArgument, message: "\(topic.name) is not a valid topic name")
      }
      defer { rd_kafka_topic_destroy(reference) }
      _ = try ClusterMetadata.ask(handle.raw, topic: reference, milliseconds: milliseconds)
    }
  }

  private func settings(of topics: [String]) throws(KafkaError) -> [String: [String: String]] {
    // librdkafka refuses an empty request.
    guard !topics.isEmpty else { return [:] }
    var requests: [OpaquePointer?] = topics.map { rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, $0) }
    defer { for request in requests { rd_kafka_ConfigResource_destroy(request) } }
    let event = try perform(RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT) { options in
      rd_kafka_DescribeConfigs(handle.raw, &requests, requests.count, options, handle.answers)
    }
    return try Self.settings(event)
  }

  private static func settings(_ event: borrowing KafkaEvent) throws(KafkaError) -> [String: [String: String]] {
    var count = 0
    let result = rd_kafka_event_DescribeConfigs_result(event.raw)
    let resources = rd_kafka_DescribeConfigs_result_resources(result, &count)
    var settings: [String: [String: String]] = [:]
    for index in 0..<count {
      let resource = resources?[index]
      let topic = String(cString: rd_kafka_ConfigResource_name(resource))
      let code = rd_kafka_ConfigResource_error(resource)
      guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaError(code, "settings of topic \(topic)") }
      var entryCount = 0
      let entries = rd_kafka_ConfigResource_configs(resource, &entryCount)
      for entry in 0..<entryCount {
        let entry = entries?[entry]
        guard let value = rd_kafka_ConfigEntry_value(entry) else { continue }
        settings[topic, default: [:]][String(cString: rd_kafka_ConfigEntry_name(entry))] = String(cString: value)
      }
    }
    return settings
  }

  /// Sends a request and waits for its answer. librdkafka enforces the timeout.
  private func perform(
    _ operation: rd_kafka_admin_op_t, _ answer: Int32, _ request: (OpaquePointer?) -> Void
  ) throws(KafkaError) -> KafkaEvent {
    let options = rd_kafka_AdminOptions_new(handle.raw, operation)
    defer { rd_kafka_AdminOptions_destroy(options) }
    rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, nil, 0)
    if operation == RD_KAFKA_ADMIN_OP_CREATETOPICS {
      rd_kafka_AdminOptions_set_operation_timeout(options, milliseconds, nil, 0)
    }
    request(options)
    while true {
      guard let event = handle.poll(milliseconds: 1000) else { continue }
      if event.type == answer {
        if let error = event.error { throw error.because(of: handle.trouble) }
        return event
      }
      _ = handle.observe(event)
    }
  }
}
