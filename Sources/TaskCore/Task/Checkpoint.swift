/// What is known to be on stable storage of a running task: enough for another worker to go on.
public struct Checkpoint: Hashable, Sendable {
  /// Counts the versions of the source that this task has met, from 0; each has its own staging file.
  public var generation: Int
  public var identity: SourceIdentity
  /// The UUID of the storage volume that holds the staging file.
  public var volume: UniqueID
  /// The staging file's name in the volume's staging directory.
  public var stagingName: String
  /// The byte ranges on stable storage.
  public var done: ByteRanges
  /// The CRC32C of the last recorded range's bytes (of at most its last 64 KiB), checked at take-over.
  public var tailCRC: UInt32?
  /// Set once the bytes are complete and verified: the file is being published and may be at its destination already.
  public var publishing: Publishing?

  public struct Publishing: Hashable, Sendable {
    /// The SHA-256 of the whole file, 32 bytes. Empty where nothing was hashed, as in measurements: PostgreSQL refuses
    /// that.
    public var sha256: [UInt8]

    public init(sha256: [UInt8]) {
      self.sha256 = sha256
    }
  }

  public init(
    generation: Int, identity: SourceIdentity, volume: UniqueID, stagingName: String, done: ByteRanges = ByteRanges(),
    tailCRC: UInt32? = nil, publishing: Publishing? = nil
  ) {
    self.generation = generation
    self.identity = identity
    self.volume = volume
    self.stagingName = stagingName
    self.done = done
    self.tailCRC = tailCRC
    self.publishing = publishing
  }
}
