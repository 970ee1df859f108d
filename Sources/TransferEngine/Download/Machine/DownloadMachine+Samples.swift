import TaskCore

extension DownloadMachine {
  /// What arrived since the last sample, as the shell sees it.
  struct Sample {
    var milliseconds: Int64
    /// Of each request that runs, the bytes of its body that have arrived in all.
    var arrived: [Int: Int64]
    /// The download itself did not take what could have come: a limit, or a disk that is slow.
    var isHeldBack: Bool
  }

  /// The milliseconds until the next sample is due.
  var sampleInterval: Int64 { resolved == nil ? 1000 : server.governor.interval }

  /// Takes a sample: how fast each connection is, and how many there should be from now on.
  mutating func sampled(_ sample: Sample) -> [Action] {
    let governed = measure(sample)
    guard case .working(.ranges(let ranges)) = state, ranges.resolved != nil else { return [] }
    // Where the end of the file is near, fewer connections seem to cost nothing, and the slowest remain.
    if !requests.isEmpty, !ranges.lacksWork, !server.isPinned { server.governor.observe(governed) }
    return giveUpUnserved() + retire(ranges) + giveWay(ranges) + handOver(ranges, sample) + send()
  }

  private mutating func measure(_ sample: Sample) -> ConnectionGovernor.Sample {
    var governed = ConnectionGovernor.Sample(
      milliseconds: sample.milliseconds, bytes: 0, settled: 0, settledBytes: 0, isHeldBack: sample.isHeldBack)
    let isAnswered = requests.running.values.contains(where: \.isAccepted)
    for (id, running) in requests.running {
      if running.answer == nil {
        requests[id]?.unanswered += sample.milliseconds
        if isAnswered { requests[id]?.sawOthers = true }
        // Others take over what it may never get.
        if let chunk = running.chunk, running.unanswered >= Self.standstillMilliseconds {
          changeRanges { $0.plan.measured(chunk, pace: 0) }
        }
      }
      guard let arrived = sample.arrived[id], case .accepted = running.answer else { continue }
      let bytes = max(0, arrived - (running.arrived ?? 0))
      governed.bytes += bytes
      if running.arrived != nil {
        governed.settled += 1
        governed.settledBytes += bytes
        requests[id]?.measured(bytes, milliseconds: sample.milliseconds)
        if let chunk = running.chunk, let pace = requests[id]?.pace {
          changeRanges { $0.plan.measured(chunk, pace: pace) }
        }
      }
      requests[id]?.arrived = arrived
    }
    governed.bytes += tally.endedBytes
    tally.endedBytes = 0
    return governed
  }

  /// Ends requests that the server leaves without an answer while it answers later ones: it serves fewer connections at a
  /// time. Their chunks are for the others, and there are so many connections fewer for a while.
  private mutating func giveUpUnserved() -> [Action] {
    let unserved = requests.ids.filter { id in
      guard let running = requests[id], running.answer == nil, !running.isRetired else { return false }
      return running.unanswered >= server.patienceMilliseconds && running.overtakenBy >= Self.overtakers
    }
    guard !unserved.isEmpty else { return [] }
    // A server that is only slow to answer some requests is not asked anew all the time.
    server.patienceMilliseconds = min(2 * server.patienceMilliseconds, Self.longestPatienceMilliseconds)
    server.governor.unserved(unserved.count)
    return giveUp(unserved)
  }

  /// Ends requests that are too many, those that would go on for long: the others finish their chunks. First those
  /// without an answer, then the slowest.
  private mutating func retire(_ ranges: Ranges) -> [Action] {
    var staying = requests.running.filter { !$0.value.isRetired }.map { (id: $0.key, running: $0.value) }
    staying.sort { ($0.running.worth, $1.id) < ($1.running.worth, $0.id) }
    let surplus = staying.prefix(max(0, staying.count - server.governor.connections)).filter { one in
      one.running.chunk.map { ranges.plan.timeLeft(of: $0) ?? .max > Self.retirementMilliseconds } ?? false
    }
    return giveUp(surplus.map(\.id))
  }

  /// Ends requests that have had their turn and would go on for another one. The next request waits for its turn.
  private mutating func giveWay(_ ranges: Ranges) -> [Action] {
    guard let turn, ranges.version.isResumable else { return [] }
    let long = requests.ids.filter { id in
      guard let running = requests[id], !running.isRetired, let arrived = running.arrived,
        case .accepted(let count?) = running.answer
      else { return false }
      return arrived >= turn && (running.shortened ?? count) - arrived > turn
    }
    return giveUp(long)
  }

  /// Ends requests that hold up the end of the file, dripping or without an answer: others fetch the rest of their chunks
  /// much sooner.
  private mutating func handOver(_ ranges: Ranges, _ sample: Sample) -> [Action] {
    var lagging: [Int] = []
    for id in requests.ids {
      guard let running = requests[id], let end = running.chunk.flatMap({ ranges.plan.end(of: $0) }), ranges.lacksWork,
        !sample.isHeldBack, isLagging(running, ranges.plan)
      else {
        requests[id]?.lagging = 0
        continue
      }
      let time = running.lagging + sample.milliseconds
      requests[id]?.lagging = time
      // Where new requests become as slow as this one, they do not help.
      guard time >= Self.lagMilliseconds, ranges.handovers[end, default: 0] < Self.handovers else { continue }
      changeRanges { $0.handovers[end, default: 0] += 1 }
      lagging.append(id)
    }
    return giveUp(lagging)
  }

  /// Ends requests early: the rest of their chunks is for others.
  private mutating func giveUp(_ ids: [Int]) -> [Action] {
    for id in ids { requests[id]?.isRetired = true }
    return ids.map { .cancel($0) }
  }

  private func isLagging(_ running: Running, _ plan: ChunkScheduler) -> Bool {
    guard !running.isRetired, let chunk = running.chunk, let left = plan.timeLeft(of: chunk),
      let rate = server.connectionRate, let anew = plan.timeLeft(of: chunk, anewAt: rate)
    else { return false }
    if running.answer == nil {
      guard let delay = plan.delay, running.unanswered / Self.slowAnswers > delay else { return false }
    }
    return left > Self.lagMilliseconds && anew < left / 4
  }

  /// What the next download from this host should know; `nil` if this one found out nothing that holds for others, because
  /// a trial runs or it may not have as many connections as are usual.
  var experience: HostConnections.Experience? {
    guard let rate = server.governor.connectionRate, server.governor.isSettled else { return nil }
    return HostConnections.Experience(connections: server.governor.lasting, rate: rate)
  }

  private static let retirementMilliseconds: Int64 = 500
  private static let lagMilliseconds: Int64 = 2000
  private static let handovers = 2
  /// An answer is late if it needs so many times as long as others.
  private static let slowAnswers: Int64 = 4
  private static let overtakers = 2
  private static let longestPatienceMilliseconds: Int64 = 16_000
  /// After so long without an answer a request counts as standing still.
  private static let standstillMilliseconds: Int64 = 1000
}

extension DownloadMachine.Running {
  /// Its bytes per second, as far as they are known: what would be lost with it.
  fileprivate var worth: Int64 { answer == nil ? -1 : pace ?? .max }

  /// Mostly the last second counts.
  fileprivate mutating func measured(_ bytes: Int64, milliseconds: Int64) {
    let rate = bytes * 1000 / max(1, milliseconds)
    let weight = min(milliseconds, 1000)
    pace = pace.map { ($0 * (1000 - weight) + rate * weight) / 1000 } ?? rate
  }
}
