/// The recorded progress of a task, with all that another worker needs to continue.
///
/// The envelope is the same for every kind of task. Only the kind itself reads and writes ``payload``.
public struct Checkpoint: Hashable, Sendable {
  /// The longest ``payload``, in bytes.
  public static let payloadLimit = 256 << 10
  /// The ``stage`` of a file that is complete, verified and about to appear at its destination. It is a state of the
  /// task, too.
  public static let publishing = "publishing"

  /// The version of the payload's format. Each kind decides what to do with a version that it does not know.
  public var version: Int
  /// The number of the source's version, counted by this task from 0. Whatever else makes the work begin anew may count,
  /// too: progress of endless generations keeps no task alive.
  public var generation: Int
  /// How much of the work is recorded: bytes for transfers, otherwise the kind's own unit.
  public var bytesDone: Int64
  /// How much work there is in total, if known.
  public var bytesTotal: Int64?
  /// The present stage, a word that the kind defines; nil if the kind has no stages.
  public var stage: String?
  /// One JSON value.
  public var payload: [UInt8]

  public init(
    version: Int = 1, generation: Int = 0, bytesDone: Int64 = 0, bytesTotal: Int64? = nil, stage: String? = nil,
    payload: [UInt8] = Array("null".utf8)
  ) {
    self.version = version
    self.generation = generation
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.stage = stage
    self.payload = payload
  }
}
