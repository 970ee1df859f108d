import ReelhaulCurl
import TaskCore

/// Follows one request through its redirects: decides where it goes next, and what the last response means. Pure.
struct Exchange {
  let asked: ResponseGate.Asked
  /// The task's source. The request itself may begin at another place.
  let source: CurlURL
  /// Whether the source or the destination has the name of a media file or an archive, and so cannot be a web page.
  let isMedia: Bool
  /// The source, if it is an object of S3.
  let object: S3URL?
  /// How many redirects are followed at most.
  let limit: Int
  /// Whether a redirect may lead from https to http: nobody can change bytes whose SHA-256 is expected.
  let mayLoseTLS: Bool
  private(set) var place: Place
  private let first: Place
  private var hops = 0
  private var next: Place?

  init(
    _ asked: ResponseGate.Asked, at place: Place, source: CurlURL, isMedia: Bool, object: S3URL? = nil,
    redirects limit: Int, mayLoseTLS: Bool = false
  ) {
    self.asked = asked
    self.place = place
    first = place
    self.source = source
    self.isMedia = isMedia
    self.object = object
    self.limit = limit
    self.mayLoseTLS = mayLoseTLS
  }

  /// Returns `nil` for a redirect that ``follow()`` follows once its response has ended. `now` is in seconds since
  /// 1970, for `Retry-After`.
  mutating func receive(_ head: CurlHead, now: Int64) -> SourceAnswer? {
    let gate = ResponseGate(
      asked: asked, url: place.url, isMedia: isMedia, isObject: object != nil && place.isAtOrigin)
    if [200, 206].contains(head.status), let failure = object?.otherVersion(in: head) { return .misdirected(failure) }
    switch gate.judge(head) {
    case .part(let range, let identity): return .part(range, of: identity)
    case .whole(let identity): return .whole(identity, isDelimited: head.isDelimited)
    case .changed(let mismatch): return .changed(mismatch)
    case .unranged: return .unranged
    case .refused(let reason, let ofRange): return .refused(.badResponse(reason, url: place.url), ofRange: ofRange)
    case .status(let status): return .status(.status(status, head: head, url: place.url, now: now))
    case .redirect(let target):
      do throws(TaskFailure) {
        next = try redirect(to: target)
        return nil
      } catch {
        return .misdirected(error)
      }
    }
  }

  /// Moves to the target of the last response's redirect. Returns false if the response was not a redirect.
  mutating func follow() -> Bool {
    guard let next else { return false }
    place = next
    self.next = nil
    hops += 1
    return true
  }

  /// Goes back to the first place. Returns false if no redirect was followed.
  mutating func restart() -> Bool {
    guard hops > 0 else { return false }
    (place, next, hops) = (first, nil, 0)
    return true
  }

  private func redirect(to target: String) throws(TaskFailure) -> Place {
    guard hops < limit else { throw Place.redirectLoop("the source", limit: limit) }
    return try place.redirected(to: target, from: source, called: "the source", mayLoseTLS: mayLoseTLS)
  }
}
