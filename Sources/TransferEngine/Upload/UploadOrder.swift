import ReelhaulCodec
import ReelhaulDigest
import TaskCore

/// One file to upload, as a run and all its successors see it.
package struct UploadOrder: Sendable {
  package let task: UniqueID
  /// Counts the versions of the source.
  package let generation: Int
  /// That of the object that it makes.
  package var owner: UploadedObject.Owner {
    .init(task: task, version: Hex.encode(digest(.sha256, of: Array(body.source.identity.version.utf8)).prefix(16)))
  }
  package let size: Int64
  package let plan: UploadPlan
  package let ifExists: IfExists
  /// Of the whole file, if the task says it.
  package let sha256: [UInt8]?
  /// How many segments are read at once as long as nothing tells whether more bring anything: one under a limit of the
  /// rate.
  var firstParallel: Int { body.isLimited ? 1 : min(plan.parallel, UploadQueue.firstWindow) }
  /// Whether an earlier run may have sent the whole file already.
  package var mayBeThere: Bool
  /// Whether another upload of the task, maybe of an earlier version, may have left the whole file at a place of its own.
  package var mayBeTwice = false
  /// Whether an earlier run may have sent some of it, or of another version, before the task was canceled.
  package var beginsAnew = false
  package let body: UploadBodies
  /// Records another session of the upload.
  package let record: @Sendable (_ session: [UInt8]) async throws -> Void
  /// Records whether the whole file may be at the destination from now on.
  package let publishing: @Sendable (Bool) async throws -> Void
  /// The entity tag of what this task itself has left there, of this version of the source or of an earlier one: it alone
  /// may be replaced. `*` if it has none.
  package var replaces: String?
  /// Whether the server has told that what it made of this version has other bytes, or nobody knows what it has told: then
  /// only reading proves something.
  package var isDoubted = false

  /// Whether this task says to have made it of this version. An object that does not say of which must be proven, and so
  /// must one that says nothing, if a request that makes it has got no answer: some stores forget or keep no metadata.
  func mayHaveMade(_ there: UploadedObject, isInDoubt: Bool = false) -> Bool {
    guard let maker = there.owner else { return mayBeThere || isInDoubt }
    return maker.task == task && (maker.version == nil || maker == owner)
  }
}

/// The rest of a segment that is to be sent.
package struct UploadSegment: Sendable {
  package let number: Int
  /// Of the segment, in the file.
  package let range: Range<Int64>
  /// Where the rest begins, within the file.
  package let offset: Int64
  /// Called with the bytes of the segment that the server has, by a target that sends it in several requests.
  package let kept: @Sendable (Int64) async throws -> Void
}
