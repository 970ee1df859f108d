/// A task as it was submitted: what never changes afterwards, `priority` apart.
public struct TaskSpec: Hashable, Sendable {
  public static let priorities = -1000...1000
  /// A URL may be as long as this, in bytes.
  public static let urlLimit = 8192
  /// How many connections a task may use at once, and how many it may if it does not say.
  public static let connectionsLimit = 1...64
  public static let standardConnections = 16
  /// Parameters may be as long as this, in bytes.
  public static let parametersLimit = 1 << 16

  public var id: UniqueID
  public var kind: TaskKind
  /// The URL the bytes come from: `https://…`, `http://…`, `storage://NAME/PATH`. Of a delete: what is deleted.
  public var source: String
  /// The URL the bytes go to; a submitted download without one gets `storage://default/` and the source's last name.
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
  /// Bytes per second, or `nil` for no limit of its own.
  public var rate: Int64?
  /// It uses at most so many connections at once.
  public var connections: Int
  /// The name of a credential that lives with the workers.
  public var credential: String?
  public var labels: [String: String]
  /// Added, not started: the task waits in `paused`.
  public var paused: Bool
  /// What the task's handler is given: one JSON value of at most ``parametersLimit`` bytes, as UTF-8 text. As it is read,
  /// white space between tokens is left out; a program that sets it itself must set valid JSON.
  public var parameters: [UInt8]?

  public init(
    id: UniqueID, kind: TaskKind, source: String, destination: String? = nil, priority: Int = 0,
    queue: String = "default", after: [UniqueID] = [], notBefore: Timestamp? = nil, expect: Expectation = Expectation(),
    ifExists: IfExists = .fail, headers: [HeaderField] = [], retry: RetryPolicy = RetryPolicy(), rate: Int64? = nil,
    connections: Int = standardConnections, credential: String? = nil, labels: [String: String] = [:],
    paused: Bool = false,
    parameters: [UInt8]? = nil
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
  }
}
