import TaskCore

/// The part of a download that is known to be on stable storage, with all that another worker needs to continue.
package struct DownloadCheckpoint: Hashable, Sendable {
  /// The number of the source's version, counted by this task from 0. Each generation has its own staging file.
  package var generation: Int
  package var identity: SourceIdentity
  /// The UUID of the storage volume that holds the staging file.
  package var volume: UniqueID
  /// The staging file's name in the volume's staging directory.
  package var stagingName: String
  /// The byte ranges on stable storage.
  package var done: ByteRanges
  /// The CRC32C of the last recorded range (at most its last 64 KiB). The next run checks it before it continues.
  package var tailCRC: UInt32?
  /// Set once the bytes are complete and verified: the file is being published and may be at its destination already.
  package var publishing: Publishing?
  /// Whether the bytes are those of one body, and nothing has proven yet that they are all, or of one version.
  package var isUnproven: Bool

  package struct Publishing: Hashable, Sendable {
    /// The SHA-256 of the whole file, 32 bytes. Empty if hashing is off, as in measurements. PostgreSQL refuses an
    /// empty one.
    package var sha256: [UInt8]
    package var verification: Verification?

    package init(sha256: [UInt8], verification: Verification? = nil) {
      self.sha256 = sha256
      self.verification = verification
    }
  }

  package init(
    generation: Int, identity: SourceIdentity, volume: UniqueID, stagingName: String, done: ByteRanges = ByteRanges(),
    tailCRC: UInt32? = nil, publishing: Publishing? = nil, isUnproven: Bool = false
  ) {
    self.generation = generation
    self.identity = identity
    self.volume = volume
    self.stagingName = stagingName
    self.done = done
    self.tailCRC = tailCRC
    self.publishing = publishing
    self.isUnproven = isUnproven
  }
}
