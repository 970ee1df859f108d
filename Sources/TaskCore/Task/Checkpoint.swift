/// What a run has recorded of its work: enough for another worker to go on.
///
/// The envelope is the same for every kind of task; ``payload`` belongs to the kind, which alone reads and writes it.
public struct Checkpoint: Hashable, Sendable {
  /// The longest ``payload``, in bytes.
  public static let payloadLimit = 256 << 10
  /// The ``stage`` of a file that is complete, verified and about to appear at its destination. It is a state of the
  /// task, too.
  public static let publishing = "publishing"

  /// The version of the payload's form: whoever reads a later one than it knows begins anew.
  public var version: Int
  /// Counts the versions of the source that this task has met, from 0.
  public var generation: Int
  /// How much of the work is safe: bytes for transfers, the kind's own unit otherwise.
  public var bytesDone: Int64
  /// How much there is to do, where it is known.
  public var bytesTotal: Int64?
  /// What the run is doing, in a word of the kind; nil where the kind has no stages.
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
