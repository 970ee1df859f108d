import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import TaskCore

/// A place that files are uploaded to, in the words of its protocol: one type for each protocol.
///
/// A file is cut into segments of one size, of which the last may be shorter; what a segment is depends on the protocol:
/// a part of an S3 multipart upload, a partial upload of tus, or the whole file. ``UploadRun`` decides which segments are
/// sent when. What a target needs to find its upload again is its session, a JSON value that the run records.
///
/// Every call throws a ``TaskFailure`` with the class that decides what becomes of the attempt, and ends soon with
/// `CancellationError` or a failure if its task is canceled. The caller repeats what may succeed another time. A target
/// repeats only what it alone can judge: it asks in another way where a server refuses the first one, ends an upload of
/// S3 again where the store's refusal may pass or an answer was lost, and looks again at an upload of tus that the server
/// is still making of its parts.
package protocol UploadTarget: Sendable {
  /// The destination for people and outputs, without secrets.
  var location: String { get }

  /// The server (host:port) that takes the file, whose connections all transfers share.
  var server: String { get async }

  /// How a file of `size` bytes is cut. It is asked once for each generation, and the answer is recorded.
  func plan(size: Int64) async throws -> UploadPlan

  /// What is at the destination; nil if nothing is, or if the protocol cannot tell. If an earlier request may have left
  /// it, it is told whose it is.
  func look(_ upload: UploadOrder) async throws -> UploadedObject?

  /// Whether what ``look(_:)`` has found has the bytes of this version; sets what proves it. For an object that is not
  /// this task's own, only what the server tells of its bytes, or the bytes themselves, are a proof.
  func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool

  /// Whether the request that makes the object refuses by itself to replace another one, and costs little then: nobody
  /// needs to look before.
  func refusesToReplace(_ upload: UploadOrder) async throws -> Bool

  /// Opens an upload. It appears at the destination only with ``finish(_:session:receipts:)``, if the plan says so.
  /// Returns its session.
  func begin(_ upload: UploadOrder) async throws -> [UInt8]

  /// What the server has of an upload that an earlier run began.
  func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding

  /// An earlier run recorded that it would begin an upload, and ended before it recorded the session: gives up what it
  /// may have left, as far as nothing shows that it is another's.
  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws

  /// Whether the server tells a second request with the same version from a new one, where the plan says that a file is
  /// sent once.
  var knowsRepeats: Bool { get }

  /// Whether ``begin(_:)`` may bring the whole file, to a place that the server chooses.
  var mayBringFile: Bool { get }

  /// Whether the server copies the bytes by itself, so that none comes from the worker.
  func copiesByStore(_ upload: UploadOrder) -> Bool

  /// How many bytes the server has of one segment of an upload that keeps parts; nil if it does not know the upload.
  func kept(of segment: Int, of upload: UploadOrder, session: [UInt8]) async throws -> Int64?

  /// Sends the rest of a segment from `offset` on, which is 0 or what the server said of the segment.
  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt

  /// Makes one file of the segments, and says what is there then. It is safe to call it again after a lost answer.
  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject

  /// Gives the upload up, so that nothing is left of it. An upload that is not there is success. Returns whether this call
  /// has ended it.
  @discardableResult
  func abort(session: [UInt8]) async throws -> Bool
}

extension UploadTarget {
  package func refusesToReplace(_ upload: UploadOrder) async throws -> Bool { false }

  package var knowsRepeats: Bool { false }

  package var mayBringFile: Bool { false }

  package func copiesByStore(_ upload: UploadOrder) -> Bool { false }

  package func kept(of segment: Int, of upload: UploadOrder, session: [UInt8]) async throws -> Int64? { 0 }

  /// Whether an answer comes from a server or gateway that does not know what became of the request: any above 499 but
  /// those that refuse it.
  static func isUntold(_ status: Int) -> Bool { status >= 500 && ![501, 503, 505, 507, 511].contains(status) }
}

/// How a file is cut for a target.
package struct UploadPlan: Hashable, Sendable {
  /// Bytes of each segment but the last.
  package var segmentSize: Int64
  /// How many segments may be sent at once.
  package var parallel: Int
  /// Whether the server keeps what arrived of a segment that was cut off, so that it can be continued.
  package var keepsParts: Bool
  /// Whether the bytes are at the destination as soon as they are sent, without ``UploadTarget/finish(_:session:receipts:)``.
  /// Then ``UploadTarget/begin(_:)`` leaves nothing at the server.
  package var publishesAtOnce: Bool
  /// Whether the server may do something twice with a file that it gets twice. Then nothing is recorded before the whole
  /// file may be there, see ``UploadOrder/publishing``; and from then on nothing is sent again, but to a server that
  /// ``UploadTarget/knowsRepeats``.
  package var isSentOnce: Bool

  package init(
    segmentSize: Int64, parallel: Int, keepsParts: Bool = false, publishesAtOnce: Bool = false, isSentOnce: Bool = false
  ) {
    self.segmentSize = segmentSize
    self.parallel = parallel
    self.keepsParts = keepsParts
    self.publishesAtOnce = publishesAtOnce
    self.isSentOnce = isSentOnce
  }

  /// The length of the blocks of which the checkpoint has checksums, if the source is checked; they are read as a whole. A
  /// part of S3 is one. Otherwise they have 1 MiB, and one more for each 16 GiB of the file, so that there are at most
  /// 16,384.
  func block(of size: Int64) -> Int64 {
    keepsParts || publishesAtOnce ? ((size >> 34) + 1) << 20 : segmentSize
  }

  /// At least one: an empty file is one empty segment.
  package func segments(of size: Int64) -> Int { max(1, segments(before: size)) }

  /// How many segments of a file of `size` bytes are wholly in `ranges`.
  package func segments(in ranges: ByteRanges, of size: Int64) -> Int {
    ranges.ranges.reduce(0) { sum, range in
      // The last segment may be shorter.
      let end = range.upperBound >= size ? segments(of: size) : Int(range.upperBound / segmentSize)
      return sum + max(0, end - segments(before: range.lowerBound))
    }
  }

  /// How many segments begin before this offset.
  private func segments(before offset: Int64) -> Int {
    let (whole, rest) = offset.quotientAndRemainder(dividingBy: max(1, segmentSize))
    return Int(whole) + (rest == 0 ? 0 : 1)
  }

  package func range(of segment: Int, size: Int64) -> Range<Int64> {
    let start = Int64(segment) * segmentSize
    return start..<start + min(segmentSize, size - start)
  }
}

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

/// What is at a destination.
package struct UploadedObject: Hashable, Sendable {
  package var size: Int64?
  package var etag: String?
  package var versionID: String?
  /// Of all its bytes, in the form of the protocol.
  package var checksum: String?
  /// Of all its bytes, in hexadecimal digits, if the entity tag is one.
  package var md5: String?
  /// Where it is, if the server chose the place.
  package var location: String?
  /// The task that uploaded it, and of which version of its source, if the object says so.
  package var owner: Owner?
  /// What proved that its bytes are those of the source.
  package var verified: UploadOutput.Verified
  /// What is not guaranteed, for people.
  package var remark: String?

  package struct Owner: Hashable, Sendable {
    package var task: UniqueID
    /// A digest of what tells the version from others. A generation does not: a task that was canceled counts them anew.
    /// Nil of an upload that a worker of an earlier version began.
    package var version: String?

    package init(task: UniqueID, version: String?) {
      self.task = task
      self.version = version
    }
  }

  package init(
    size: Int64? = nil, etag: String? = nil, versionID: String? = nil, location: String? = nil, owner: Owner? = nil,
    verified: UploadOutput.Verified = .none, remark: String? = nil
  ) {
    self.size = size
    self.etag = etag
    self.versionID = versionID
    self.location = location
    self.owner = owner
    self.verified = verified
    self.remark = remark
  }
}

/// What a server has of an upload.
package enum UploadStanding: Sendable {
  /// The server does not know the upload any more.
  case gone
  /// The server does not tell what it has of it, if it knows it.
  case untold
  /// It has these whole segments, and so many bytes of others.
  case open([Int: UploadReceipt], partial: [Int: Int64] = [:])
  /// The upload is finished.
  case finished(UploadedObject)
}

/// What a server said of a whole segment.
package struct UploadReceipt: Hashable, Sendable {
  package var segment: Int
  package var etag: String
  /// What proved that the server has these bytes; nil if nothing did.
  package var verified: UploadOutput.Verified?
  /// Of the bytes that were sent, or compared, if it was computed.
  package var crc32c: UInt32?
  /// Of the file, if the segment is all of it.
  package var versionID: String?
  /// Where the file is, if the segment is all of it and the server chose the place.
  package var location: String?

  /// What the server has made of a segment that is the whole file.
  var object: UploadedObject { UploadedObject(etag: etag, versionID: versionID) }

  package init(
    segment: Int, etag: String = "", verified: UploadOutput.Verified? = nil, crc32c: UInt32? = nil,
    versionID: String? = nil, location: String? = nil
  ) {
    self.segment = segment
    self.etag = etag
    self.verified = verified
    self.crc32c = crc32c
    self.versionID = versionID
    self.location = location
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

extension TaskFailure {
  /// The server may have done what it does with the file, and would do it again.
  static func answerLost(at location: String, _ reason: String? = nil) -> TaskFailure {
    TaskFailure(
      code: .answerLost,
      message: """
        \(location) was sent the whole file, and has not told what became of it\(reason.map { " (\($0))" } ?? ""): it \
        may have taken it. A POST is not sent a second time
        """, class: .fail)
  }

  /// The destination takes no file of `size` bytes.
  static func tooLarge(_ size: Int64, for location: String, most: Int64) -> TaskFailure {
    TaskFailure(
      code: .fileTooLarge, message: "\(location) takes at most \(most) bytes, but the file has \(size)", class: .fail)
  }
}
