/// A task as it was submitted. Nothing of it changes later, except `priority`.
public struct TaskSpec: Hashable, Sendable {
  public static let priorities = -1000...1000
  /// The most bytes in a URL.
  public static let urlLimit = 8192
  /// How many connections a task may use at once, and how many it may if it does not say.
  public static let connectionsLimit = 1...64
  public static let standardConnections = 16
  /// Parameters may be as long as this, in bytes.
  public static let parametersLimit = 1 << 16

  public var id: UniqueID
  public var kind: TaskKind
  /// The URL from which the bytes come: `https://…`, `http://…`, `storage://NAME/PATH`, `s3://BUCKET/KEY`. A delete
  /// deletes this URL, which may also be that of an upload, `tus+https://…`.
  public var source: String
  /// The URL to which the bytes go: of a download `storage://`, of an upload `https://`, `http://`, `s3://` or
  /// `tus+https://`, of a copy any of them. A submitted download without one gets `storage://default/` and the source's last
  /// name.
  public var destination: String?
  /// −1000…1000; higher runs first, strictly.
  public var priority: Int
  public var queue: String
  /// Tasks that must have succeeded before this one is queued.
  public var after: [UniqueID]
  public var notBefore: Timestamp?
  public var expect: Expectation
  public var ifExists: IfExists
  public var headers: [HeaderField]
  public var retry: RetryPolicy
  /// Bytes per second; `nil` for no limit of its own.
  public var rate: Int64?
  /// It uses at most so many connections at once.
  public var connections: Int
  /// The name of a credential that lives with the workers.
  public var credential: String?
  public var labels: [String: String]
  /// If true, the task is added but not started: it waits in `paused`.
  public var paused: Bool
  /// The parameters for the task's handler: one JSON value of at most ``parametersLimit`` bytes, as UTF-8 text. Reading
  /// a task removes white space between tokens. A program that sets the property itself must set valid JSON.
  public var parameters: [UInt8]?
  /// If true, a download takes a body that only the end of the connection ends, once something proves that it is whole:
  /// what is expected, the file's own format, or a second fetch with the same bytes.
  public var allowUnframed: Bool
  /// The URL of a web hook: every event of the task is posted there.
  public var notify: String?
  /// The span in which the task was submitted, as W3C Trace Context has it; see ``trace``.
  public var traceparent: String?
  public var tracestate: String?

  public init(
    id: UniqueID, kind: TaskKind, source: String, destination: String? = nil, priority: Int = 0,
    queue: String = "default", after: [UniqueID] = [], notBefore: Timestamp? = nil, expect: Expectation = Expectation(),
    ifExists: IfExists = .fail, headers: [HeaderField] = [], retry: RetryPolicy = RetryPolicy(), rate: Int64? = nil,
    connections: Int = standardConnections, credential: String? = nil, labels: [String: String] = [:],
    paused: Bool = false,
    parameters: [UInt8]? = nil, allowUnframed: Bool = false, notify: String? = nil,
    traceparent: String? = nil, tracestate: String? = nil
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
    self.connections = connections
    self.credential = credential
    self.labels = labels
    self.paused = paused
    self.parameters = parameters
    self.allowUnframed = allowUnframed
    self.notify = notify
    self.traceparent = traceparent
    self.tracestate = tracestate
  }
}
