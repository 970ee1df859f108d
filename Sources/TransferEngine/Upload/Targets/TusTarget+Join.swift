import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Parts become one upload.
extension TusTarget {
  /// How often a joined upload is looked at until it is whole: for about 15 seconds.
  private static let looks = 11

  /// Lets the server make one upload of the parts, and records it: another run must not join them again.
  func join(_ session: inout Session, _ upload: UploadOrder) async throws {
    if upload.mayBeThere { session.isAgain = true }
    guard ledger.mayWrite else { throw CancellationError() }
    let parts = session.urls.joined(separator: " ")
    do {
      session.joined = try await create(
        [("Upload-Concat", "final;\(parts)"), metadata(upload)], takes: .seconds(600 + upload.size >> 22)
      ).url
    } catch let failure as TaskFailure where [.http(400), .http(404), .http(410)].contains(failure.code) {
      // It may have lost something of a part since it was sent.
      for segment in session.urls.indices {
        let size = upload.plan.range(of: segment, size: upload.size).count
        guard try await offset(of: session.urls[segment], size: Int64(size)) == Int64(size) else {
          throw UploadIncomplete()
        }
      }
      throw failure
    }
    try await upload.record(session.json)
  }

  /// What became of the joined upload. Its parts are not needed any more once the server has said that it is whole.
  func joined(_ session: Session, _ upload: UploadOrder) async throws -> UploadedObject {
    var session = session
    let url = session.joined ?? endpoint.text
    var object = UploadedObject(size: upload.size, location: url, verified: .size)
    for number in 0..<Self.looks {
      switch try await standing(of: url, size: upload.size) {
      case .unknown where session.isShort:
        try await upload.publishing(false)
        throw UploadGone()
      case .unknown:
        object.size = nil
        object.verified = .none
        object.remark = Self.remark(session, and: Self.forgottenRemark)
        return object
      case .at(let offset) where offset < upload.size:
        session.isShort = true
        try await upload.record(session.json)
        throw Self.short(url, offset, upload)
      case .at:
        let isLeft = try await !removed(session.urls)
        object.remark = Self.remark(
          session, and: isLeft ? "the server keeps the parts beside the file until it lets them expire" : nil)
        return object
      case .joining: try await lane.loop.sleep(for: .milliseconds(min(2000, 100 << number)))
      }
    }
    guard !session.isShort else { throw TaskFailure.badResponse("it has no Upload-Offset any more", url: url) }
    object.size = nil
    object.verified = .none
    object.remark = Self.remark(session, and: "the server does not say whether it has joined the parts yet")
    return object
  }

  /// Whether the parts of a joined upload are gone.
  private func removed(_ urls: [String]) async throws -> Bool {
    do {
      return try await terminated(urls).isWhole
    } catch is TaskFailure {
      // Of a run that is stopped, the next one ends them.
      try Task.checkCancellation()
      return false
    }
  }
}
