extension TaskField {
  /// All fields of a task, in the order in which JSON has them and in which they are checked.
  package static let all: [TaskField] = [
    TaskField(
      "id", .id(Place(\.id)),
      option: Option("id", "UUID", help: "The task's id; the same id twice is one task, the first")),
    TaskField("kind", .kind(Place(\.kind))),
    TaskField("source", .text(Place(\.source), limit: TaskSpec.urlLimit)) { spec throws(InvalidTask) in
      try spec.checkURLs()
    },
    TaskField(
      "destination", .optionalText(Place(\.destination), limit: TaskSpec.urlLimit),
      option: Option(
        "to", "URL",
        help: """
          Where it goes: storage://NAME/PATH; by default storage://default/ and the source's last name, or else the \
          task's id
          """)),
    TaskField(
      "priority", .integer(Place(\.priority), TaskSpec.priorities),
      option: Option("priority", short: "p", help: "Higher runs first"), staysAsSubmitted: false),
    TaskField(
      "queue", .name(Place(\.queue), limit: 100), option: Option("queue", short: "q", "NAME", help: "Its queue")),
    TaskField(
      "after", .ids(Place(\.after)),
      option: Option(
        "after", "TASK", help: "Run once that task has succeeded; its id, or the end of it; up to 100 tasks")
    ) { spec throws(InvalidTask) in try spec.checkAfter() },
    TaskField(
      "notBefore", .time(Place(\.notBefore)),
      option: Option(
        "not-before", "TIME", help: "Run no sooner: 2026-01-31T20:00:00Z, or from now, in d, h, m and s: +1d, +2h30m")),
    TaskField(
      "sha256", in: "expect", .digest(Place(\.expect.sha256), count: 32),
      option: Option("sha256", "HEX", group: .checks, help: "The SHA-256 the file must have")),
    TaskField(
      "md5", in: "expect", .digest(Place(\.expect.md5), count: 16),
      option: Option("md5", "HEX", group: .checks, help: "The MD5 the file must have")),
    TaskField(
      "bytes", in: "expect", .bytes(Place(\.expect.bytes), from: 0),
      option: Option("bytes", group: .checks, help: "The length the file must have")),
    TaskField(
      "ifExists", .ifExists(Place(\.ifExists)),
      option: Option(
        "if-exists", help: "What to do where the destination exists; a file that is skipped has to be the expected one")
    ),
    TaskField(
      "headers", .headers(Place(\.headers)),
      option: Option(
        "header", short: "H", "'K: V'", group: .transfer, help: "A request header; secrets belong in a credential")
    ) { spec throws(InvalidTask) in try spec.checkHeaders() },
    TaskField(
      "maxAttempts", .integer(Place(\.retry.maxAttempts), RetryPolicy.attempts),
      option: Option("max-attempts", group: .transfer, help: "Attempts in a row without progress")),
    TaskField(
      "retryAfter", .seconds(Place(\.retry.intervals)),
      option: Option(
        "retry-after", "SECONDS,…", group: .transfer,
        help: "The waits before further attempts, the last one repeating; by default they grow, with jitter")
    ) { spec throws(InvalidTask) in try spec.checkIntervals() },
    TaskField(
      "rate", .bytes(Place(\.rate), from: 1),
      option: Option("rate", group: .transfer, help: "At most so many bytes a second")),
    TaskField(
      "connections", .integer(Place(\.connections), TaskSpec.connectionsLimit),
      option: Option("connections", group: .transfer, help: "At most so many connections at once")),
    TaskField(
      "credential", .optionalName(Place(\.credential), limit: 100),
      option: Option("credential", "NAME", group: .transfer, help: "A credential that the workers have")),
    TaskField(
      "labels", .labels(Place(\.labels)),
      option: Option("label", short: "l", "K=V", help: "A label; 'title' names the task to people")
    ) { spec throws(InvalidTask) in try spec.checkLabels() },
    TaskField(
      "paused", .flag(Place(\.paused)), option: Option("paused", help: "Add it without starting it")),
    TaskField(
      "allowUnframed", .flag(Place(\.allowUnframed)),
      option: Option(
        "allow-unframed", group: .checks,
        help: """
          Accept a file whose end only the connection's end marks, if the checks above, its MP4 boxes or a second equal \
          fetch prove that it is whole
          """)),
    TaskField(
      "notify", .optionalText(Place(\.notify), limit: TaskSpec.urlLimit),
      option: Option(
        "notify", "URL",
        help: "A web hook: each event of the task is posted there, signed if the workers have a secret for it")
    ) { spec throws(InvalidTask) in try spec.checkNotify() },
    TaskField(
      "traceparent", .optionalText(Place(\.traceparent), limit: 256),
      option: Option(
        "traceparent", "CONTEXT",
        help: "The span that it belongs to, as W3C Trace Context has it; otherwise that of TRACEPARENT"),
      staysAsSubmitted: false
    ) { spec throws(InvalidTask) in try spec.checkTrace() },
    TaskField(
      "tracestate", .optionalText(Place(\.tracestate), limit: TraceContext.stateLimit),
      option: Option(
        "tracestate", "STATE", help: "What tracing systems add to it; otherwise TRACESTATE"),
      staysAsSubmitted: false),
    TaskField(
      "parameters", .json(Place(\.parameters), limit: TaskSpec.parametersLimit),
      option: Option(
        "parameters", "JSON|@FILE", help: "What the task's handler is given: a JSON value, or a file of one")),
  ]

  private static let byPath = Dictionary(uniqueKeysWithValues: all.map { ($0.path, $0) })

  /// The field that errors name `path`.
  package static func named(_ path: String) -> TaskField? { byPath[path] }
}
