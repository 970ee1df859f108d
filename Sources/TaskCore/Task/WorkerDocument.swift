/// A worker in the form that people and programs see.
public struct WorkerDocument: Hashable, Sendable {
  public var id: UniqueID
  public var host: String
  public var pid: Int32
  public var startedAt: Timestamp
  public var leaseUntil: Timestamp
  /// Shown as `live`, or `draining` if it is to end, or as `expired` until the sweep has requeued its tasks.
  public var isLive: Bool
  public var running: Int
  /// The kinds that it carries out.
  public var kinds: Set<TaskKind>
  public var volumes: [String: UniqueID]
  public var labels: [String: String]
  public var bytesPerSecond: Int64
  /// Whether somebody has asked it to end.
  public var isDraining: Bool
  /// The version of its program; nil if it does not tell.
  public var version: String?
  /// The time since it last renewed its lease, by the store's clock.
  public var leaseAge: Duration

  public init(
    id: UniqueID, host: String, pid: Int32, startedAt: Timestamp, leaseUntil: Timestamp, isLive: Bool, running: Int,
    kinds: Set<TaskKind>, volumes: [String: UniqueID], labels: [String: String], bytesPerSecond: Int64,
    isDraining: Bool = false, version: String? = nil, leaseAge: Duration = .zero
  ) {
    self.id = id
    self.host = host
    self.pid = pid
    self.startedAt = startedAt
    self.leaseUntil = leaseUntil
    self.isLive = isLive
    self.running = running
    self.kinds = kinds
    self.volumes = volumes
    self.labels = labels
    self.bytesPerSecond = bytesPerSecond
    self.isDraining = isDraining
    self.version = version
    self.leaseAge = leaseAge
  }

  /// Whether its version is so old that it may not know the request to end. Such a worker needs SIGTERM.
  package var mayNotDrain: Bool { version == nil }

  /// The word for people and programs.
  public var state: String { !isLive ? "expired" : isDraining ? "draining" : "live" }
}
