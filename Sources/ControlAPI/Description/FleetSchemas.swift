import TaskStore

/// The documents of what the fleet is asked for as a whole.
extension JSONSchema {
  static let failure = named(
    "FailureGroup",
    .object([
      .must("code", text("The error of the tasks.")),
      .must("host", text("Empty: they have no remote host, or several.")),
      .must("count", integer("", 1...)), .must("isAtLeast", flag("Whether there may be more.")),
      .must("newestAt", time), .must("taskId", id), .must("message", text("Of the task that failed last.").orNull),
      .must("advice", text("What to do about it.").orNull), .must("hostCount", integer("How many hosts.", 0...)),
      .must(
        "hosts",
        list(
          .object([.must("host", text()), .must("count", integer("How many of the tasks.", 1...))]),
          "The 100 with the most of these tasks, those first; none in the overview.")),
    ]))

  static let queueUse = named(
    "QueueUse",
    .object([
      .must("queue", text()), .must("weight", number()), .must("limit", integer("", 0...).orNull),
      .must("running", integer("", 0...)), .must("counts", map(integer("", 0...), "By state.")),
      .must(
        "oldestRunnableAgeSeconds", integer("How long the oldest task that could run has been ready.", 0...).orNull),
    ]))

  static let hostUse = named(
    "HostUse",
    .object([
      .must("host", text()), .must("waiting", integer("", 0...)), .must("running", integer("", 0...)),
      .must("failed", integer("", 0...)), .must("limit", integer("", 0...).orNull),
      .must("bytesPerSecond", integer("", 0...)),
    ]))

  static let storageUse = named(
    "StorageUse",
    .object([
      .must("storage", text()), .must("freeBytes", integer("", 0...).orNull),
      .must("promisedBytes", integer("What of the free space files under way will need.", 0...).orNull),
      .must("totalBytes", integer("", 0...).orNull), .must("workers", integer("How many live workers have it.", 1...)),
    ]))

  static let taskCount = named(
    "TaskCount",
    .object([.may("state", text()), .may("queue", text()), .may("kind", text()), .must("count", integer("", 1...))]))

  static let samples = named(
    "Samples",
    .object([
      .must("step", integer("Seconds.", 10...)),
      .must(
        "samples",
        list(
          .object([
            .must("at", time), .must("counts", map(integer("", 0...), "By state, at the end of the step.")),
            .must("bytesPerSecond", integer("The mean.", 0...)), .must("succeeded", integer("Within the step.", 0...)),
            .must("failed", integer("", 0...)), .must("canceled", integer("", 0...)),
          ]))),
    ]))

  static let overview = named(
    "Overview",
    .object([
      .must("counts", map(integer("", 0...), "By state.")),
      .must("bytesPerSecond", integer("Null for a token of some queues.", 0...).orNull),
      .must("running", integer("", 0...)), .must("workers", integer("", 0...)),
      .must("bytesToday", integer("Of the tasks that succeeded since midnight, UTC, but for deletions.", 0...)),
      .must("succeededToday", integer("", 0...)), .must("failedToday", integer("", 0...)),
      .must("eventsBehindSeconds", integer("", 0...)),
      .must("kindsWithoutWorker", list(text(), "Always empty for a token of some queues.")),
      .must(
        "stuck",
        list(
          .object([
            .must("reason", text(values: ["cap", "pause", "schedule", "dependency", "worker", "storage"])),
            .must("count", integer("", 1...)), .must("isAtLeast", flag("Whether there may be more.")),
            .must("text", text("A sentence that says how many wait for what.")),
            .must("query", text("The query of the list that has them.")),
          ]), "Why tasks do not run, the most tasks first. Always empty for a token of some queues.")),
      .must("failures", list(failure, "The groups that failed last.")),
    ]))
}
