import ReelhaulSystem

extension HostConnections {
  /// After so long without a refusal, one connection more than the host allowed is tried.
  private static let trialInterval = Duration.seconds(30).nanoseconds
  /// A host that takes so much longer with a request than with one that it refused works on it.
  private static let refusalTime = Duration.milliseconds(100).nanoseconds
  /// What a host served at once so long ago, it is taken to serve now.
  private static let recent = Duration.seconds(10).nanoseconds

  /// Requests that run.
  struct Use {
    var relays = 0
    var others = 0

    var total: Int { relays + others }
  }

  /// What is known of one host, and who uses it. The time is a parameter, in nanoseconds.
  struct Host {
    /// By storage root.
    var used: [String: Use] = [:]
    /// The numbers of the transfers that use the host, those that came first in front.
    var transfers: [Int] = []
    var waiting: [Waiter] = []
    /// The requests on their way or answered, by number.
    var requests: [Int: Request] = [:]
    /// The requests that the host serves now, and the most at once of late.
    var served = 0
    var mostServed: (count: Int, at: Int64) = (0, 0)
    /// What the last refusal has left.
    var allowed: (count: Int, at: Int64)?
    var experience: (Experience, at: Int64)?

    var isIdle: Bool { used.isEmpty && transfers.isEmpty && waiting.isEmpty }

    var total: Int { used.values.reduce(0) { $0 + $1.total } }

    /// How many the host allows, as far as is known.
    func allowed(now: Int64) -> Int {
      allowed.map { $0.count + Int((now - $0.at) / HostConnections.trialInterval) } ?? .max
    }

    func hasRoom(for user: User, limit: Int, now: Int64) -> Bool {
      let (own, total, allowed) = (used[user.root] ?? Use(), total, allowed(now: now))
      guard user.isRelay else {
        return (own.others == 0 || total < limit) && (total < allowed || used.values.allSatisfy { $0.others == 0 })
      }
      let half = max(1, min(limit, allowed) / 2)
      return total < allowed && (own.total == 0 || total < limit && used.values.reduce(0) { $0 + $1.relays } < half)
    }

    /// Unless there is no room, or it is another's turn.
    mutating func take(_ user: User, limit: Int, now: Int64) -> Bool {
      func hasRoom(_ user: User) -> Bool { self.hasRoom(for: user, limit: limit, now: now) }
      guard hasRoom(user), !waiting.contains(where: { hasRoom($0.user) }) else { return false }
      count(user, 1)
      return true
    }

    mutating func count(_ user: User, _ change: Int) {
      var own = used[user.root] ?? Use()
      if user.isRelay { own.relays += change } else { own.others += change }
      used[user.root] = own.total == 0 ? nil : own
    }

    /// Those who wait and have room now, in their order: they have a connection from now on.
    mutating func admit(limit: Int, now: Int64) -> [Waiter] {
      var admitted: [Waiter] = []
      while let index = waiting.firstIndex(where: { hasRoom(for: $0.user, limit: limit, now: now) }) {
        count(waiting[index].user, 1)
        admitted.append(waiting.remove(at: index))
      }
      return admitted
    }

    /// The most requests that the host served at once of late.
    func mostServed(now: Int64) -> Int {
      now - mostServed.at < HostConnections.recent ? max(served, mostServed.count) : served
    }

    mutating func noteServed(_ count: Int, now: Int64) {
      if count >= mostServed(now: now) { mostServed = (count, now) }
    }

    /// A request was refused. Returns whether it was one too many. The reason is another if the host serves no request,
    /// or served as many a moment ago: a URL that is always refused must fail, and must not take the host from others.
    mutating func refused(_ number: Int?, now: Int64) -> Bool {
      let refused = forget(refused: number)
      let total = total
      guard served > 0 || isWorking(beside: refused, now: now), total > mostServed(now: now) else { return false }
      allowed = (max(1, total - 1), now)
      return true
    }

    /// The host took the later ones without this one.
    @discardableResult
    mutating func forget(refused number: Int?) -> Request? {
      guard let number else { return nil }
      for (other, request) in requests where other > number { requests[other]?.count = request.count - 1 }
      return requests.removeValue(forKey: number)
    }

    /// Whether the host works on a request, of which nothing has come yet: it would have refused it by now, as the other.
    private func isWorking(beside refused: Request?, now: Int64) -> Bool {
      guard let refused else { return false }
      let patience = now - refused.sentAt + HostConnections.refusalTime
      return requests.values.contains { now - $0.sentAt >= patience }
    }
  }

  struct Request {
    let sentAt: Int64
    /// The requests that were on their way or answered when it was sent, itself included, without those that the host has
    /// refused since.
    var count: Int
  }

  /// Whose request it is.
  struct User {
    let root: String
    let isRelay: Bool
  }

  struct Waiter {
    let number: Int
    let user: User
    let continuation: UnsafeContinuation<Bool, Never>
  }
}
