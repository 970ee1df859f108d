import TaskCore

/// The documents of tasks, workers and limits.
extension JSONSchema {
  /// A task to submit, from the table of a task's fields.
  static let submission: JSONSchema = {
    var members: [Member] = []
    var objects: [(name: String, members: [Member])] = []
    for field in TaskField.all {
      let member = Member.may("\(field.name)", value(of: field))
      guard let object = field.object.map({ "\($0)" }) else {
        members.append(member)
        continue
      }
      if let index = objects.firstIndex(where: { $0.name == object }) {
        objects[index].members.append(member)
      } else {
        objects.append((object, [member]))
      }
    }
    for object in objects { members.append(.may(object.name, .object(object.members, isOpen: false))) }
    return named(
      "TaskSubmission",
      .object(
        members, "A task to submit. Which fields its kind needs, and what its URLs may be, is checked too.",
        isOpen: false))
  }()

  /// Where the help of the option holds on the command line only.
  private static let helps = [
    "after": "Run once these tasks have succeeded.",
    "notBefore": "Run no sooner.",
    "headers": "Request headers; secrets belong in a credential.",
    "labels": "Labels; `title` names the task to people.",
    "traceparent": "The span that it belongs to, as W3C Trace Context has it; otherwise that of the request.",
    "tracestate": "What tracing systems add to `traceparent`, without which it is ignored.",
    "parameters": "What the task's handler is given: any JSON value.",
  ]

  private static func value(of field: TaskField) -> JSONSchema {
    let help = helps[field.path] ?? field.option.map { $0.help + "." } ?? ""
    let name = "^[A-Za-z0-9._-]+$"
    return switch field.value {
    case .id: text(help, format: "uuid")
    case .ids: list(id, help, most: 100)
    case .kind:
      text(
        "download, upload, copy, delete, noop, or a kind of your own; by default download.", pattern: name,
        length: 1...32)
    case .text(_, let limit), .optionalText(_, let limit): text(help, length: 0...limit)
    case .name(_, let limit): text(help, pattern: name, length: 1...limit)
    case .optionalName(_, let limit): text(help, pattern: name, length: 1...limit)
    case .integer(_, let range): integer(help, Int64(range.lowerBound)...Int64(range.upperBound))
    case .bytes(_, let first): integer(help, first...)
    case .time: text(help, format: "date-time")
    case .digest(_, let count): text(help, pattern: "^[0-9A-Fa-f]{\(count * 2)}$")
    case .ifExists: text(help, values: IfExists.allCases.map(\.rawValue))
    case .headers, .labels: map(text().orNull, help)
    case .seconds: list(integer("", 0...86_400), help, most: 100)
    case .flag: flag(help)
    case .json: JSONSchema(form: .any, help: help)
    }
  }

  static let task = named("Task", .object(documentOfTask))

  static let shownTask = named(
    "ShownTask",
    .object(
      documentOfTask + [
        .may("advice", text("What to do about its failure.")),
        .may(
          "ranges", list(list(integer("", 0...)), "The byte ranges that are safely at the destination, half-open.")),
        .may(
          "parts",
          .object([
            .must("done", integer("", 0...)), .must("count", integer("", 0...)), .must("size", integer("", 0...)),
          ])),
      ]))

  private static let documentOfTask: [Member] = [
    .must("id", id), .must("kind", text()), .must("state", text(values: TaskState.allCases.map(\.rawValue))),
    .must("priority", integer()), .must("queue", text()), .must("source", text("Without the values of its query.")),
    .must("destination", text().orNull), .must("bytesTotal", integer("", 0...).orNull),
    .must("bytesDone", integer("", 0...)), .must("rate", integer("Bytes a second.", 0...).orNull),
    .must("eta", integer("Seconds.", 0...).orNull), .must("attempt", integer("", 0...)),
    .must("maxAttempts", integer("", 1...)), .must("worker", id.orNull), .must("epoch", integer("", 0...)),
    .must(
      "generation",
      integer("Counts the versions of the source, and by eights how often an upload lost recorded bytes.", 0...)),
    .must("sequence", integer("The number of its last event.", 0...)),
    .must("createdAt", time), .must("startedAt", time.orNull), .must("finishedAt", time.orNull),
    .must("runAt", time.orNull), .must("digest", .object([.may("sha256", text())]).orNull), .must("output", .any),
    .must(
      "error", .object([.must("code", text()), .must("message", text()), .must("retryable", flag())]).orNull),
    .must("after", list(id)), .must("labels", map(text())), .must("parameters", .any),
    .may("status", text("The state in the words of a list's filter.", values: TaskStatus.allCases.map(\.rawValue))),
    .may("waits", text("What it waits for.").orNull),
    .may("spec", .object([], "Its other fields, as they were submitted.")),
  ]

  private static let listedTask = named(
    "ListedTask", .object(documentOfTask.map { .may($0.name, $0.schema) }, "A task, or what `fields` asks for of it."))

  static let taskList = named(
    "TaskList",
    .object([
      .must("tasks", list(listedTask, "With `fields`, only those members of each.")), .must("hasMore", flag()),
      .must("next", text("The cursor of the next page.").orNull),
      .must("searchedTo", time.orNull),
    ]))

  static let submitted = named(
    "Submitted",
    .object([
      .must("id", id), .may("outcome", text("With `wait=applied`.", values: ["applied", "duplicate"])),
      .may("differs", differs),
    ]))

  private static let differs = flag("Of a `duplicate`: true if the task of this id is another, which stays as it is.")

  static let submittedLines = named("SubmittedLines", .object([.must("results", lineResults)]))

  static let lineResults = list(
    .object([
      .must("line", integer("From 1.", 1...)), .may("id", id), .may("code", text()), .may("error", text()),
      .may("command", text("The id of a command that Kafka did not confirm.")),
      .may("outcome", text("With `wait=applied`.", values: ["applied", "duplicate"])), .may("differs", differs),
      .may("reason", text("Why a command was refused, as a word: `illegal_transition`, `unknown_task`, …")),
    ]))

  static let actionBody = named(
    "ActionBody",
    .object(
      [
        .may("priority", integer("Of `prioritize`.", -1000...1000)),
        .may("files", flag("Of `remove`: whether the file that the task made in a storage goes too.")),
      ], isOpen: false))

  static let sentCommand = named(
    "SentCommand",
    .object([
      .must("command", id), .must("task", id),
      .must("action", text()), .may("outcome", text("With `wait=applied`.", values: ["applied"])),
    ]))

  static let worker = named(
    "Worker",
    .object([
      .must("id", id), .must("host", text()), .must("pid", integer()), .must("startedAt", time),
      .must("leaseUntil", time), .must("leaseAgeSeconds", number("The time since it last renewed its lease.")),
      .must("state", text(values: ["live", "draining", "expired"])), .must("version", text().orNull),
      .must("running", integer("", 0...)),
      .must("kinds", list(text())), .must("volumes", map(text())), .must("labels", map(text())),
      .must("bytesPerSecond", integer("", 0...)),
    ]))

  static let limit = named(
    "Limit",
    .object([
      .must("scope", text(values: ["total", "kind", "queue", "host", "storage"])), .must("name", text()),
      .must("running", integer("", 0...)), .must("limit", integer("", 0...).orNull),
      .must("room", integer("", 0...).orNull), .must("declared", integer("", 0...).orNull),
      .must(
        "learned", integer("How many tasks of the host are of use at once, as the workers found out.", 1...).orNull),
      .must("weight", number().orNull),
      .must(
        "outage",
        JSONSchema.object([
          .must("server", text()), .must("since", time), .must("probeAt", time), .must("code", text()),
          .must("message", text()),
        ]).orNull),
    ]))
}
