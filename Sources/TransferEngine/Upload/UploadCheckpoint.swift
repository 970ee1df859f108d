import ReelhaulCodec
import TaskCore

/// What the next run of an upload needs to continue.
package struct UploadCheckpoint: Hashable, Sendable {
  private static let version = 1
  /// How many generations of the envelope a setback counts for.
  private static let setback = 8

  package var generation = 0
  /// How often something that was recorded had to be sent anew. What is sent anew then is progress of another generation of
  /// the envelope, and of these there are not many: otherwise an upload that is lost time and again would be tried for ever.
  package var setbacks = 0
  package var identity: UploadIdentity
  package var plan: UploadPlan
  /// When an upload was about to be begun, in milliseconds since 1970. Without a session nobody knows whether it was.
  package var intendedAt: Int64 = 0
  package var session: [UInt8]?
  /// What the server had confirmed of the file. To continue, the server is asked.
  package var done = ByteRanges()
  /// What the check of the source has seen, if it was read for that: all later reads, of all runs, must give the same.
  package var checked: BlockSums?
  /// Whether the whole file may be at the destination: it was about to be finished, or sent as a whole.
  package var isPublishing = false
  /// Whether an upload that is forgotten may have left the whole file, maybe of an earlier version, where the server chooses
  /// the places.
  package var mayBeTwice = false
  /// Whether the server has told that what it made of this version has other bytes, or may have told it before the task
  /// was canceled.
  package var isDoubted = false

  package var envelope: Checkpoint {
    let payload = JSONWriter.write { json in
      json.object { json in
        json.member("size", identity.size)
        json.member("version", identity.version)
        json.member("segmentSize", plan.segmentSize)
        json.member("parallel", plan.parallel)
        if plan.keepsParts { json.member("keepsParts", true) }
        if plan.publishesAtOnce { json.member("publishesAtOnce", true) }
        if plan.isSentOnce { json.member("sentOnce", true) }
        json.member("intendedAt", intendedAt)
        if let session {
          json.name("session")
          json.raw(session)
        }
        if !done.isEmpty { json.bounds("done", of: done) }
        if let checked {
          json.member("block", checked.block)
          json.member("checked", checked.text)
        }
        if isPublishing { json.member("publishing", true) }
        if mayBeTwice { json.member("twice", true) }
        if isDoubted { json.member("doubted", true) }
        if setbacks > 0 { json.member("setbacks", setbacks) }
      }
    }
    return Checkpoint(
      version: Self.version, generation: generation + Self.setback * setbacks, bytesDone: done.count,
      bytesTotal: identity.size,
      stage: isPublishing && !plan.publishesAtOnce && done.count == identity.size ? Checkpoint.publishing : nil,
      payload: payload)
  }

  package init(identity: UploadIdentity, plan: UploadPlan, generation: Int) {
    self.identity = identity
    self.plan = plan
    self.generation = generation
  }

  /// Reads what ``envelope`` wrote. Throws if the envelope has another version, or if the payload is damaged.
  package init(_ envelope: Checkpoint) throws(DecodingFailure) {
    let version = envelope.version
    self = try JSONReader.read(envelope.payload) { reader throws(DecodingFailure) in
      guard version == Self.version else {
        throw reader.invalid("this program cannot read a checkpoint of version \(version)")
      }
      var checkpoint = UploadCheckpoint(
        identity: UploadIdentity(size: 0, version: ""), plan: UploadPlan(segmentSize: 0, parallel: 1), generation: 0)
      // Checkpoints of an earlier version have only the number of bytes.
      checkpoint.done = ByteRanges(0..<max(0, envelope.bytesDone))
      var block: Int64 = 0
      var checked: String?
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "size": checkpoint.identity.size = try reader.integer(0...Int64.max)
        case "version": checkpoint.identity.version = try reader.string()
        case "segmentSize": checkpoint.plan.segmentSize = try reader.integer(1...Int64.max)
        case "parallel": checkpoint.plan.parallel = try reader.integer(1...10_000)
        case "keepsParts": checkpoint.plan.keepsParts = try reader.bool()
        case "publishesAtOnce": checkpoint.plan.publishesAtOnce = try reader.bool()
        case "sentOnce": checkpoint.plan.isSentOnce = try reader.bool()
        case "intendedAt": checkpoint.intendedAt = try reader.integer(0...Int64.max)
        case "session": checkpoint.session = try reader.raw()
        case "done": checkpoint.done = try reader.bounds()
        case "block": block = try reader.integer(1...Int64.max)
        case "checked": checked = try reader.string()
        case "publishing": checkpoint.isPublishing = try reader.bool()
        case "twice": checkpoint.mayBeTwice = try reader.bool()
        case "doubted": checkpoint.isDoubted = try reader.bool()
        case "setbacks": checkpoint.setbacks = try reader.integer(0...max(0, envelope.generation / Self.setback))
        default: try reader.skip()
        }
      }
      guard checkpoint.plan.segmentSize > 0 else { throw reader.missing("segmentSize") }
      // Without it the source is checked once more.
      checkpoint.checked = checked.flatMap { BlockSums($0, block: block, size: checkpoint.identity.size) }
      checkpoint.generation = envelope.generation - Self.setback * checkpoint.setbacks
      return checkpoint
    }
  }
}
