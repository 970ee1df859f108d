/// A worker in the form that people and programs see.
public struct WorkerDocument: Hashable, Sendable {
  public var id: UniqueID
  public var host: String
  public var pid: Int32
  public var startedAt: Timestamp
  public var leaseUntil: Timestamp
  /// Shown as `live`, or as `expired` until the sweep has requeued its tasks.
  public var isLive: Bool
  public var running: Int
  /// The kinds that it carries out.
  public var kinds: Set<TaskKind>
  public var volumes: [String: UniqueID]
  public var labels: [String: String]
  public var bytesPerSecond: Int64

  public init(
    id: UniqueID, host: String, pid: Int32, startedAt: Timestamp, leaseUntil: Timestamp, isLive: Bool, running: Int,
    kinds: Set<TaskKind>, volumes: [String: UniqueID], labels: [String: String], bytesPerSecond: Int64
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
  }
}
