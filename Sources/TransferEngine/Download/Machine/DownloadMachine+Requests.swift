import TaskCore

extension DownloadMachine {
  /// What there is to ask now.
  mutating func send() -> [Action] {
    guard phase == .fetching || phase == .sealing, !isPausing else { return [] }
    if phase == .sealing { return running.isEmpty ? [seal()] : [] }
    guard mode == .ranges, let plan, let identity else {
      return running.isEmpty ? [ask(mode == .whole ? .whole : .first(count: limits.firstChunk), at: origin)] : []
    }
    if plan.isComplete { return running.isEmpty ? allBytesAreThere() : [] }
    var actions: [Action] = []
    // The first request finds out where the source is; the others follow.
    let most = resolved == nil || plan.size <= limits.firstChunk ? 1 : governor.connections
    while running.count < most, let grant = self.plan?.next(connections: most, rate: connectionRate) {
      if let shortened = grant.shortened { actions += shorten(to: shortened) }
      actions.append(ask(.part(grant.chunk.range, of: identity), at: resolved ?? origin, chunk: grant.chunk.id))
    }
    return actions
  }

  /// A new request takes over the end of a running one.
  private mutating func shorten(to chunk: ChunkScheduler.Chunk) -> [Action] {
    guard let (id, answered) = running.first(where: { $0.value.chunk == chunk.id }) else { return [] }
    let count = chunk.range.upperBound - answered.offset
    running[id]?.shortened = count
    return [.shorten(id, count: count)]
  }

  private var origin: Place { Place(url: source, isAtOrigin: true) }

  mutating func ask(_ asked: ResponseGate.Asked, at place: Place, chunk: Int? = nil) -> Action {
    lastRequest += 1
    var ifRange: String?
    if case .part(_, let identity) = asked, usesIfRange, phase == .fetching { ifRange = identity.ifRange }
    let request = Request(id: lastRequest, place: place, asked: asked, ifRange: ifRange)
    running[lastRequest] = Running(request: request, place: place, chunk: chunk)
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
    return ask(.part(0..<1, of: identity), at: resolved ?? origin)
  }

  mutating func complete() -> [Action] {
    phase = .complete
    return [.complete(bytes: identity?.size ?? 0)]
  }
}
