import TaskCore

extension TaskSpec {
  /// The names of the fields in which this task differs from another submission with the same id. Without the
  /// priority, because it may have been changed.
  func differences(from other: TaskSpec) -> [String] {
    let differences = [
      ("kind", kind != other.kind), ("source", source != other.source),
      ("destination", destination != other.destination),
      ("queue", queue != other.queue), ("after", after != other.after), ("notBefore", notBefore != other.notBefore),
      ("expect", expect != other.expect), ("ifExists", ifExists != other.ifExists),
      // The store does not keep their order.
      ("headers", Set(headers) != Set(other.headers)),
      ("maxAttempts", retry.maxAttempts != other.retry.maxAttempts),
      ("retryAfter", retry.intervals != other.retry.intervals), ("rate", rate != other.rate),
      ("credential", credential != other.credential), ("labels", labels != other.labels),
      ("paused", paused != other.paused),
    ]
    return differences.compactMap { name, differs in differs ? name : nil }
  }
}
