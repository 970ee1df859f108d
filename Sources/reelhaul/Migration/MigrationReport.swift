import CommandLineKit
import ReelhaulCodec
import ReelhaulKafka
import ReelhaulPostgres
import TaskAdvice
import TaskStore

/// What `migrate` has done to one thing, or would do.
enum MigrationStatus: String, Sendable {
  case unchanged
  /// A migration, or the routines.
  case applied
  /// A topic.
  case created
  /// A storage root.
  case marked
  /// `--plan` has left it as it was.
  case pending
}

/// What `migrate` has done to the database's schema, or would do.
struct SchemaReport: Sendable {
  struct Step: Sendable {
    var number: Int
    var name: String
    var checksum: Int64
    var status: MigrationStatus
  }

  /// Every migration that the program knows, in order.
  var migrations: [Step]
  var routines: (checksum: Int64, status: MigrationStatus)

  init(_ result: MigrationResult, isDry: Bool) {
    let status: MigrationStatus = isDry ? .pending : .applied
    let changed = Set(result.migrations.map(\.number))
    migrations = Schema.migrations.map { migration in
      Step(
        number: migration.number, name: migration.name, checksum: migration.checksum,
        status: changed.contains(migration.number) ? status : .unchanged)
    }
    routines = (Schema.routines.checksum, result.routines ? status : .unchanged)
  }

  /// The version of the schema before; 0 if there was none. Migrations are applied in order and without gaps.
  var before: Int { migrations.count { $0.status == .unchanged } }
  /// The version of the schema when all is done.
  var after: Int { migrations.count }

  var lines: [String] {
    var lines: [String] = []
    for step in migrations where step.status != .unchanged {
      let done = step.status == .pending ? "is to be applied" : "applied"
      lines.append("schema: migration \(step.number), \(step.name), \(done)")
    }
    switch routines.status {
    case .unchanged: break
    case .pending: lines.append("schema: functions, views and triggers are to be made anew")
    default: lines.append("schema: functions, views and triggers made anew")
    }
    return lines.isEmpty ? ["schema: version \(after), up to date"] : lines
  }
}

struct StorageReport: Sendable {
  var name: String
  var path: String
  /// nil if the root has no mark.
  var volume: String?
  var status: MigrationStatus

  var line: String {
    guard let volume else { return "storage \(name): \(path) would be marked as a volume" }
    return "storage \(name): \(status == .marked ? "marked as volume" : "volume") \(volume)"
  }
}

/// What `migrate` has done to the fleet's topics, or would do.
struct TopicsReport: Sendable {
  struct Topic: Sendable {
    var name: String
    /// Those of the topic; those that it is planned to have while it is pending.
    var partitions: Int
    var status: MigrationStatus
    var differences: [TopicDifference]
  }

  var topics: [Topic]

  var lines: [String] {
    var lines = topics.filter { $0.status != .unchanged }.map { topic in
      let done = topic.status == .pending ? "is to be made" : "made"
      return "topic \(topic.name): \(done), with \(topic.partitions) partitions"
    }
    let isComplete = lines.isEmpty
    lines += topics.flatMap(\.differences).map { "topic \($0)" }
    return isComplete ? lines + ["topics: all there"] : lines
  }
}

extension Output {
  /// `topics`: nil if no Kafka is configured.
  func json(isDry: Bool, _ schema: SchemaReport, _ storages: [StorageReport], _ topics: TopicsReport?) {
    document { json in
      json.object { json in
        json.member("plan", isDry)
        json.name("schema")
        json.object { json in
          json.member("before", schema.before)
          json.member("after", schema.after)
        }
        json.name("migrations")
        json.array { json in
          for step in schema.migrations {
            json.object { json in
              json.member("number", step.number)
              json.member("name", step.name)
              json.member("checksum", "\(step.checksum)")
              json.member("status", step.status.rawValue)
            }
          }
        }
        json.name("routines")
        json.object { json in
          json.member("checksum", "\(schema.routines.checksum)")
          json.member("status", schema.routines.status.rawValue)
        }
        json.name("storages")
        json.array { json in
          for storage in storages { Self.write(storage, to: &json) }
        }
        json.name("topics")
        guard let topics else { return json.null() }
        json.array { json in
          for topic in topics.topics { Self.write(topic, to: &json) }
        }
      }
    }
  }

  private static func write(_ storage: StorageReport, to json: inout JSONWriter) {
    json.object { json in
      json.member("name", storage.name)
      json.member("path", storage.path)
      json.member("volume", orNull: storage.volume)
      json.member("status", storage.status.rawValue)
    }
  }

  private static func write(_ topic: TopicsReport.Topic, to json: inout JSONWriter) {
    json.object { json in
      json.member("name", topic.name)
      json.member("partitions", topic.partitions)
      json.member("status", topic.status.rawValue)
      json.name("differences")
      json.array { json in
        for difference in topic.differences {
          json.object { json in
            json.member("setting", difference.setting)
            json.member("planned", difference.planned)
            json.member("actual", difference.actual)
          }
        }
      }
    }
  }
}
