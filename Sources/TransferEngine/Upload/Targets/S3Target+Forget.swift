import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Uploads that a lost answer may have left in the bucket.
extension S3Target {
  /// Of a listing of the uploads to one key.
  private static let mostPages = 100
  /// How many of the uploads to one key may have been begun at the same time. More are not looked at.
  private static let mostUploads = 1000

  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {
    guard !plan.publishesAtOnce else { return }
    let begun: [String]
    do {
      begun = try await uploads(since: milliseconds)
    } catch let error as S3Error where Self.mayNotList.contains(error.status) {
      // What was left, if anything was, stays until the bucket's own rule.
      return
    } catch {
      throw client.failure(error, key)
    }
    for uploadID in begun {
      // Somebody else's has parts.
      guard try await isEmpty(uploadID) else { continue }
      try await abort(session: Session(uploadID: uploadID).json)
    }
  }

  /// Whether an open upload has no part. One that was ended since it was listed is no longer open.
  private func isEmpty(_ uploadID: String) async throws -> Bool {
    do {
      return try await parts(of: uploadID).isEmpty
    } catch let error as S3Error where error.status == 404 || Self.mayNotList.contains(error.status) {
      return false
    } catch {
      throw client.failure(error, key)
    }
  }

  /// The open uploads to exactly this key that were begun when this task was about to.
  private func uploads(since milliseconds: Int64) async throws -> [String] {
    var begun: [String] = []
    var next: S3UploadList.Marker?
    var pages = 0
    repeat {
      var query: S3Query = ["uploads": "", "prefix": key, "encoding-type": "url"]
      if let next {
        query.append("key-marker", next.key)
        if let id = next.uploadID { query.append("upload-id-marker", id) }
      }
      let (page, head) = try await client.answer(S3UploadList.self, S3Client.Call(method: .get, query: query))
      let now = Clocks.realtimeMicroseconds() / 1_000_000
      // The store dates its uploads by its own clock.
      let ahead = head["date"].flatMap(CurlDate.seconds).map { $0 - now } ?? client.clockDifference
      let since = milliseconds + ahead * 1000
      begun += page.uploads.lazy.filter { upload in
        guard upload.key.utf8.elementsEqual(key.utf8), let initiated = upload.initiated else { return false }
        return (since - 5000...since + 60_000).contains(initiated.microseconds / 1000)
      }.map(\.uploadID).prefix(Self.mostUploads - begun.count)
      next = page.next
      pages += 1
      // Those of the key itself come first; its prefix may have any number of others.
    } while next?.key.utf8.elementsEqual(key.utf8) == true && pages < Self.mostPages
      && begun.count < Self.mostUploads
    return begun
  }
}
