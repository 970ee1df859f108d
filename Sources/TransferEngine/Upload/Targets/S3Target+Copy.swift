import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Copies that the store makes by itself, so that no byte comes to the worker.
extension S3Target {
  /// Whether the store is asked to copy by itself. A copy of a whole object has no condition on its destination that all
  /// stores look at, so one that must not replace anything goes through the worker; it is not longer than a part.
  func copiesByStore(_ upload: UploadOrder) -> Bool {
    guard sharesSource, !hasRefusedCopy.isSet, upload.body.source.copyFields != nil else { return false }
    return !upload.plan.publishesAtOnce || (upload.replaces == nil && upload.ifExists == .replace)
  }

  /// Lets the store copy a part, or the whole object: of this version of the source, and of no other.
  func copy(_ segment: UploadSegment, of upload: UploadOrder, _ session: Session) async throws -> UploadReceipt {
    guard let fields = upload.body.source.copyFields else { throw UploadSourceChanged() }
    var call = S3Client.Call(method: .put, key: key, headers: fields)
    call.isSlow = true
    if let uploadID = session.uploadID {
      call.query = ["partNumber": "\(segment.number + 1)", "uploadId": uploadID]
      let range = "bytes=\(segment.range.lowerBound)-\(segment.range.upperBound - 1)"
      call.headers.append(HeaderField(name: "x-amz-copy-source-range", value: range))
    } else {
      call.headers += [HeaderField(name: "x-amz-metadata-directive", value: "REPLACE")] + objectFields(upload)
    }
    do {
      let answer = try await client.send(call)
      // A store that knows no copies takes the request for one that sends an empty body.
      guard !answer.body.isEmpty else { throw S3Error(status: 501) }
      let etag =
        session.uploadID == nil
        ? try client.document(S3CopiedObject.self, in: answer, key).etag
        : try client.document(S3CopiedPart.self, in: answer, key).etag
      return UploadReceipt(segment: segment.number, etag: etag, versionID: answer.head["x-amz-version-id"])
    } catch let error as S3Error {
      switch error.code {
      case "PreconditionFailed", "NoSuchKey", "NoSuchVersion":
        // If it has not changed, the store does not find what is there.
        try await upload.body.source.check()
      case "NoSuchUpload":
        try await checkDoubt(upload)
        throw UploadGone()
      default:
        guard Self.refusesCopy(error) else { throw failure(error) }
      }
      // Another upload then takes the bytes from the worker.
      hasRefusedCopy.set()
      throw UploadGone()
    }
  }

  /// Whether the store does not copy at all, or not this source.
  private static func refusesCopy(_ error: S3Error) -> Bool {
    error.status == 405 || error.mayRefuseField
      || ["AccessDenied", "MethodNotAllowed", "InvalidRequest"].contains(error.code)
  }
}
