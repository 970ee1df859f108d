import ReelhaulCurl
import TaskCore

/// A request and its redirects: where it goes next, and what the last answer tells. Pure.
struct Exchange {
  let asked: ResponseGate.Asked
  /// What the task names, wherever this request begins.
  let source: CurlURL
  /// What is fetched is no web page, by the names of the source and the destination.
  let isMedia: Bool
  /// How many redirects are followed.
  let limit: Int
  private(set) var place: Place
  private var hops = 0
  private var next: Place?

  init(_ asked: ResponseGate.Asked, at place: Place, source: CurlURL, isMedia: Bool, redirects limit: Int) {
    self.asked = asked
    self.place = place
    self.source = source
    self.isMedia = isMedia
    self.limit = limit
  }

  /// `nil` for a redirect: to be followed once its response is over. `now` in seconds since 1970, for `Retry-After`.
  mutating func receive(_ head: CurlHead, now: Int64) -> SourceAnswer? {
    switch ResponseGate(asked: asked, url: place.url, isMedia: isMedia).judge(head) {
    case .part(let range, let identity): return .part(range, of: identity)
    case .whole(let identity): return .whole(identity, isDelimited: head.isDelimited)
    case .changed(let mismatch): return .changed(mismatch)
    case .unranged: return .unranged
    case .refused(let reason): return .refused(.badResponse(reason, url: place.url))
    case .status(let status): return .status(.status(status, head: head, url: place.url, now: now))
    case .redirect(let target):
      switch redirect(to: target) {
      case .success(let place):
        next = place
        return nil
      case .failure(let failure): return .misdirected(failure)
      }
    }
  }

  /// Goes on to where the last response redirected to; false where it did not.
  mutating func follow() -> Bool {
    guard let next else { return false }
    place = next
    self.next = nil
    hops += 1
    return true
  }

  private func redirect(to target: String) -> Result<Place, TaskFailure> {
    guard hops < limit else {
      return refused(.redirectLoop, "the source redirects more than \(limit) times")
    }
    guard let next = CurlURL(place.url)?.resolving(target), next.scheme == "http" || next.scheme == "https" else {
      return refused(.redirectRefused, "the source redirects to what is no http or https URL")
    }
    guard next.text.utf8.count <= TaskSpec.urlLimit else {
      return refused(.redirectRefused, "the source redirects to a URL of more than \(TaskSpec.urlLimit) bytes")
    }
    guard !next.hasCredentials else {
      return refused(.redirectRefused, "the source redirects to a URL with credentials in it")
    }
    return .success(Place(url: next.text, isAtOrigin: place.isAtOrigin && next.isSameOrigin(as: source)))
  }

  private func refused(_ code: TaskFailure.Code, _ message: String) -> Result<Place, TaskFailure> {
    .failure(TaskFailure(code: code, message: message, class: .fail))
  }
}
