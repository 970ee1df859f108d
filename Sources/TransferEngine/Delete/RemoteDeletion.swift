import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Deletes what a URL of another server names: a resource of the web, an upload of tus, or objects of S3.
///
/// It is exact: what has not the expected size is not deleted, and what cannot be compared is refused. It is idempotent:
/// a deletion whose answer was lost finds nothing in the next run, and that is success.
package struct RemoteDeletion: Sendable {
  /// What was deleted.
  package struct Result: Hashable, Sendable {
    package var files: Int64
    /// Nil if the server did not tell the size.
    package var bytes: Int64?
    /// There was nothing to delete.
    package var wasAbsent = false

    static let absent = Result(files: 0, bytes: 0, wasAbsent: true)
  }

  let spec: TaskSpec
  let root: StorageRoot
  let ledger: any TransferLedger
  /// What earlier runs of the task have deleted.
  let before: Deletion.Count
  /// Records what all runs have deleted so far.
  let record: @Sendable (Deletion.Count) async throws -> Void

  private static let redirects = 5

  /// - Parameter root: Whose loop and connections are used.
  package init(
    _ spec: TaskSpec, root: StorageRoot, ledger: any TransferLedger, before: Deletion.Count,
    record: @escaping @Sendable (Deletion.Count) async throws -> Void
  ) {
    self.spec = spec
    self.root = root
    self.ledger = ledger
    self.before = before
    self.record = record
  }

  /// Throws ``TaskFailure``; `CancellationError` if the task has another owner, or if the Swift task is canceled.
  package func run(_ place: ResourceURL) async throws -> Result {
    do {
      return try await root.loop.run {
        let pulse = root.loop.repeating(every: .seconds(10), ledger.pulse)
        defer { pulse.cancel() }
        return switch place {
        case .web(let url): try await delete(url, .web)
        case .tus(let url): try await delete(url.endpoint, .tus)
        case .s3(let url): try await delete(url)
        case .storage:
          throw TaskFailure(code: .sourceInvalid, message: "\(place) cannot be deleted here", class: .fail)
        }
      }
    } catch is TaskFailure where Task.isCancelled || !ledger.mayWrite {
      throw CancellationError()
    }
  }

  // MARK: The web and tus

  private enum Dialect {
    case web, tus
  }

  private func delete(_ place: WebURL, _ dialect: Dialect) async throws -> Result {
    guard let url = CurlURL(place.text) else {
      throw TaskFailure(code: .sourceInvalid, message: "the source cannot be sent", class: .fail)
    }
    let fields = try await root.fields(of: spec.credential, for: url)
    do {
      return try await delete(url, dialect, fields)
    } catch let failure as TaskFailure where failure.mayBeOfOldCredential {
      let renewed = try await root.fields(of: spec.credential, for: url, refused: fields)
      guard renewed != fields else { throw failure }
      return try await delete(url, dialect, renewed)
    }
  }

  private func delete(_ url: CurlURL, _ dialect: Dialect, _ fields: [HeaderField]) async throws -> Result {
    var headers = spec.headers.overridden(by: fields).map { (name: $0.name, value: $0.value) }
    if dialect == .tus { headers.append(("Tus-Resumable", "1.0.0")) }
    if let expected = spec.expect.bytes {
      let answer = try await send(.head, to: url, headers)
      if Self.isAbsent(answer) { return .absent }
      guard answer.isSuccess else { throw TaskFailure(refusing: answer.head, url: url.text) }
      let size = dialect == .tus ? answer.head.number("upload-length") : answer.head.size
      try check(size, expected, url.text)
      // It must still be the same when it is deleted.
      if let tag = answer.head["etag"], tag.hasPrefix("\"") { headers.append(("If-Match", tag)) }
    }
    let answer = try await send(.delete, to: url, headers)
    switch answer.status {
    case 200, 202, 204: return Result(files: 1, bytes: spec.expect.bytes)
    case _ where Self.isAbsent(answer): return .absent
    case 412 where spec.expect.bytes != nil:
      var failure = TaskFailure(refusing: answer.head, url: url.text)
      failure.message += ": it has changed since its size was compared"
      failure.class = .retry
      throw failure
    case 405, 501:
      var failure = TaskFailure(refusing: answer.head, url: url.text)
      failure.message += dialect == .tus ? ": this server does not end uploads" : ": this server does not delete it"
      failure.class = .fail
      throw failure
    // 207 tells of each part of a collection, and some of it may be left.
    case 200..<300:
      throw TaskFailure(
        code: .badResponse,
        message: "\(URLRedaction.redact(url.text)): status \(answer.status) does not say that it is deleted",
        class: .fail)
    default: throw TaskFailure(refusing: answer.head, url: url.text)
    }
  }

  func check(_ size: Int64?, _ expected: Int64, _ url: String) throws(TaskFailure) {
    let place = URLRedaction.redact(url)
    guard let size else {
      throw TaskFailure(
        code: .lengthUnknown, message: "\(place) is not deleted: the server does not tell its size", class: .fail)
    }
    guard size == expected else {
      throw TaskFailure(
        code: .sizeMismatch, message: "\(place) is not deleted: it has \(size) bytes, but \(expected) were expected",
        class: .fail)
    }
  }

  private static func isAbsent(_ answer: CurlAnswer) -> Bool { [404, 410].contains(answer.status) }

  /// A redirect to another server is not followed: nobody named what is deleted there.
  private func send(
    _ method: CurlRequest.Method, to url: CurlURL, _ headers: [(name: String, value: String)]
  ) async throws -> CurlAnswer {
    var place = url
    for _ in 0...Self.redirects {
      guard ledger.mayWrite else { throw CancellationError() }
      var request = CurlRequest(method, url: place.text, headers: headers)
      request.mayBegin = { [ledger] in ledger.mayWrite }
      let answer = try await root.lane().answer(request)
      guard (300..<400).contains(answer.status) else { return answer }
      guard [307, 308].contains(answer.status), let next = answer.head["location"].flatMap(place.resolving),
        next.isSameOrigin(as: url), !next.hasCredentials
      else {
        throw TaskFailure(
          code: .redirectRefused,
          message: """
            \(URLRedaction.redact(url.text)) redirects with status \(answer.status): for a delete, only 307 and 308 to \
            the same server are followed
            """, class: .fail)
      }
      place = next
    }
    throw Place.redirectLoop(URLRedaction.redact(url.text), limit: Self.redirects)
  }
}
