/// Microseconds since 1970-01-01T00:00:00Z, the resolution of PostgreSQL's `timestamptz`.
public struct Timestamp: Hashable, Comparable, Sendable {
  public var microseconds: Int64

  public init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  public static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }
}

/// What sort of work a task is. Open: a handler registered with a worker may bring its own.
public struct TaskKind: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  public static let download = TaskKind(rawValue: "download")
  public static let upload = TaskKind(rawValue: "upload")
  public static let copy = TaskKind(rawValue: "copy")
  public static let delete = TaskKind(rawValue: "delete")
  /// Does nothing and succeeds; for measuring everything around the work.
  public static let noop = TaskKind(rawValue: "noop")
}

/// What to do when the destination exists already.
public enum IfExists: String, Sendable, CaseIterable {
  /// The task fails with `destination_exists`.
  case fail
  /// The task succeeds and changes nothing.
  case skip
  /// The finished file replaces the old one, atomically.
  case replace
}

/// What the bytes must turn out to be.
public struct Expectation: Hashable, Sendable {
  /// 32 bytes, or `nil`.
  public var sha256: [UInt8]?
  /// 16 bytes, or `nil`.
  public var md5: [UInt8]?
  public var bytes: Int64?

  public init(sha256: [UInt8]? = nil, md5: [UInt8]? = nil, bytes: Int64? = nil) {
    self.sha256 = sha256
    self.md5 = md5
    self.bytes = bytes
  }
}

public struct HeaderField: Hashable, Sendable {
  public var name: String
  public var value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

/// A task as it was submitted: what never changes afterwards, `priority` apart.
public struct TaskSpec: Hashable, Sendable {
  public var id: UUID
  public var kind: TaskKind
  /// The URL the bytes come from: `https://…`, `http://…`, `storage://NAME/PATH`. Of a delete: what is deleted.
  public var source: String
  /// The URL the bytes go to; a submitted download without one gets `storage://default/` and the source's last name.
  public var destination: String?
  /// −1000…1000; higher runs first, strictly.
  public var priority: Int
  public var queue: String
  /// Tasks that must have succeeded before this one is queued.
  public var after: [UUID]
  public var notBefore: Timestamp?
  public var expect: Expectation
  public var ifExists: IfExists
  public var headers: [HeaderField]
  public var retry: RetryPolicy
  /// Bytes per second, or `nil` for no limit of its own.
  public var rate: Int64?
  /// The name of a credential that lives with the workers.
  public var credential: String?
  public var labels: [String: String]
  /// Added, not started: the task waits in `paused`.
  public var paused: Bool

  public init(
    id: UUID, kind: TaskKind, source: String, destination: String? = nil, priority: Int = 0,
    queue: String = "default", after: [UUID] = [], notBefore: Timestamp? = nil, expect: Expectation = Expectation(),
    ifExists: IfExists = .fail, headers: [HeaderField] = [], retry: RetryPolicy = RetryPolicy(), rate: Int64? = nil,
    credential: String? = nil, labels: [String: String] = [:], paused: Bool = false
  ) {
    self.id = id
    self.kind = kind
    self.source = source
    self.destination = destination
    self.priority = priority
    self.queue = queue
    self.after = after
    self.notBefore = notBefore
    self.expect = expect
    self.ifExists = ifExists
    self.headers = headers
    self.retry = retry
    self.rate = rate
    self.credential = credential
    self.labels = labels
    self.paused = paused
  }
}
