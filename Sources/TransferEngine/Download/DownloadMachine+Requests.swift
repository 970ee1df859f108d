import Curl
import TaskCore

extension DownloadMachine {
  /// What there is to ask now.
  mutating func send() -> [Action] {
    guard phase == .fetching || phase == .sealing, !isPausing else { return [] }
    if phase == .sealing { return running.isEmpty ? [seal()] : [] }
    guard mode == .ranges, var plan else {
      return running.isEmpty ? [ask(mode == .whole ? .whole : .first(count: limits.firstChunk), at: source)] : []
    }
    if plan.isComplete { return running.isEmpty ? allBytesAreThere() : [] }
    var actions: [Action] = []
    // The first request finds out where the source is; the others follow.
    let most = resolved == nil ? 1 : connections.current
    while running.count < most, let identity,
      let range = plan.take(lastRequest + 1, connections: most)
    {
      self.plan = plan
      actions.append(ask(.part(range, of: identity), at: resolved ?? source))
    }
    return actions
  }

  mutating func ask(_ asked: ResponseGate.Asked, at url: CurlURL) -> Action {
    lastRequest += 1
    var ifRange: String?
    if case .part(_, let identity) = asked, usesIfRange, phase == .fetching { ifRange = identity.ifRange }
    if case .part(let range, _) = asked, phase == .fetching { plan?.assign(range, to: lastRequest) }
    let request = Request(
      id: lastRequest, url: url.text, asked: asked, ifRange: ifRange, isAtOrigin: url.isSameOrigin(as: source))
    running[lastRequest] = Running(request: request, url: url)
    return .request(request)
  }

  mutating func allBytesAreThere() -> [Action] {
    guard needsSeal, !expectsDigest else { return complete() }
    phase = .sealing
    return send()
  }

  /// Asks for one byte, to compare what the answer tells of the source.
  private mutating func seal() -> Action {
    guard let identity else { return .end(.stopped) }
    return ask(.part(0..<min(1, identity.size ?? 1), of: identity), at: resolved ?? source)
  }

  mutating func complete() -> [Action] {
    phase = .complete
    return [.complete(bytes: identity?.size ?? 0)]
  }
}
