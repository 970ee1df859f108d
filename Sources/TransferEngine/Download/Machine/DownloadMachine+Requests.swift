import TaskCore

extension DownloadMachine {
  /// The requests that can be sent now.
  mutating func send() -> [Action] {
    guard case .working(let work) = state else { return [] }
    switch work {
    case .probing(let probe):
      guard requests.isEmpty else { return [] }
      switch probe.question {
      case .first: return [ask(.first(count: limits.firstChunk), at: origin)]
      case .whole: return [ask(.whole, at: origin)]
      }
    case .ranges(let ranges):
      return send(ranges)
    case .whole:
      return []
    case .comparing:
      guard requests.isEmpty else { return [] }
      return [ask(.whole, at: origin)]
    case .sealing(let seal):
      // One byte is enough: only the head is compared.
      guard requests.isEmpty else { return [] }
      return [ask(.part(0..<1, of: seal.version.identity), at: seal.resolved ?? origin)]
    }
  }

  private mutating func send(_ ranges: Ranges) -> [Action] {
    var ranges = ranges
    let identity = ranges.version.identity
    if ranges.plan.isComplete {
      guard requests.isEmpty else { return [] }
      let seal = Seal(
        version: ranges.version, received: ranges.plan.received, isWhole: false, resolved: ranges.resolved)
      return allBytesAreThere(seal, isNeeded: ranges.needsSeal)
    }
    var actions: [Action] = []
    let most = most(ranges)
    while requests.count < most,
      let grant = ranges.plan.next(connections: most, rate: server.connectionRate, turn: turn)
    {
      if let shortened = grant.shortened { actions += shorten(to: shortened) }
      actions.append(
        ask(
          .part(grant.chunk.range, of: identity), at: ranges.resolved ?? origin,
          ifRange: server.usesIfRange ? identity.ifRange : nil, chunk: grant.chunk.id))
    }
    ranges.lacksWork = requests.count < most
    state = .working(.ranges(ranges))
    return actions
  }

  /// The bytes after which a connection of a limited download is given back, because others wait for one; `nil` if it
  /// may be kept.
  var turn: Int64? {
    let governor = server.governor
    guard server.isAwaited, let limit = [governor.wanted, governor.share].compactMap(\.self).min() else { return nil }
    return limits.chunks.turn(at: limit / Int64(governor.connections))
  }

  /// How many requests there may be now. While it is not known where the source is, one finds out; the others follow.
  private func most(_ ranges: Ranges) -> Int {
    guard ranges.plan.size > limits.firstChunk, !server.isPinned else { return 1 }
    guard ranges.resolved == nil else { return server.governor.connections }
    let isAsking = requests.running.values.contains { $0.request.place == origin && !$0.isAccepted }
    return requests.count + (isAsking ? 0 : 1)
  }

  /// Shortens a running request, because a new one takes over its end.
  private mutating func shorten(to chunk: ChunkScheduler.Chunk) -> [Action] {
    guard let (id, running) = requests.running.first(where: { $0.value.chunk == chunk.id }) else { return [] }
    let count = chunk.range.upperBound - running.offset
    requests[id]?.shortened = count
    return [.shorten(id, count: count)]
  }

  var origin: Place { Place(url: source, isAtOrigin: true) }

  private mutating func ask(
    _ asked: ResponseGate.Asked, at place: Place, ifRange: String? = nil, chunk: Int? = nil
  ) -> Action {
    .request(requests.add(asked, at: place, ifRange: ifRange, chunk: chunk))
  }

  /// Completes the download. If needed, and if no digest is expected, first asks once more whether the source is still
  /// the same.
  mutating func allBytesAreThere(_ seal: Seal, isNeeded: Bool) -> [Action] {
    guard isNeeded, !expectsDigest else { return complete(seal.version) }
    state = .working(.sealing(seal))
    return send()
  }

  mutating func complete(_ version: Version) -> [Action] {
    state = .complete(version)
    return [.complete(bytes: version.identity.size ?? 0)]
  }
}
