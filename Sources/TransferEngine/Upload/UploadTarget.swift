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
