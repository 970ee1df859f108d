import TaskCore

extension DownloadMachine {
  /// A request failed: tries again, reads the credential again, or ends the run.
  mutating func failed(_ failure: TaskFailure, _ running: Running, _ work: Work) -> [Action] {
    if case .sealing(let seal) = work { return unsealed(seal, failure, running) }
    if case .ranges(let ranges) = work, !requests.isEmpty, let actions = renew(ranges, after: failure, of: running) {
      return actions
    }
    if isRefusal(failure, running, work) { return refused(failure, work) }
    if running.isMisranged, !server.isAskedWhole, requests.isEmpty, failure.class != .retry || tally.retries.isSpent {
      server.isAskedWhole = true
      tally.retries.reset()
      return restart(.whole)
    }
    guard failure.class == .retry || isStale(failure, running, work) else { return end(.failed(failure)) }
    if running.isSurplus { return standInLine(work, after: failure) }
    if !requests.isEmpty {
      // While others are answered, one that is not was one too many. Otherwise the reason may be another.
      let answered = requests.answered
      let isSurplus = running.sawOthers || answered > 0
      let mayBeStale = Self.staleCodes.contains(failure.code) && running.place.url != source
      if !running.isAccepted, isSurplus, !mayBeStale {
        server.governor.refused(answered: answered)
      } else {
        server.governor.broke()
      }
      return []
    }
    return retry(work, after: failure)
  }

  /// The host serves others of this process instead, so nothing has failed: the next request waits for its turn in
  /// ``HostConnections``. The pause before is for a host that a storage may ask out of turn.
  private mutating func standInLine(_ work: Work, after failure: TaskFailure) -> [Action] {
    guard requests.isEmpty else { return [] }
    guard let pause = tally.retries.pause(withoutCounting: failure) else {
      var failure = failure
      failure.class = .wait
      return end(.failed(failure))
    }
    state = .waiting(.retry, again(work, after: failure))
    return [.pause(milliseconds: pause)]
  }

  /// While other requests run, one asks the source for a fresh URL as soon as a signed one, to which the source
  /// redirected earlier, may have expired. Returns `nil` for another failure.
  private mutating func renew(_ ranges: Ranges, after failure: TaskFailure, of running: Running) -> [Action]? {
    var ranges = ranges
    if running.request.place == origin {
      guard ranges.resolved == nil, let expired = ranges.expired else { return nil }
      // Also the fresh URL is refused, or there is none: one request more may be too many. Otherwise the last request
      // that runs will ask again.
      (ranges.resolved, ranges.expired) = (expired, nil)
      state = .working(.ranges(ranges))
      let answered = requests.answered
      if answered > 0 { server.governor.unserved(server.governor.connections - answered) }
      return []
    }
    guard Self.staleCodes.contains(failure.code) else { return nil }
    if running.request.place == ranges.resolved {
      (ranges.resolved, ranges.expired) = (nil, ranges.resolved)
      state = .working(.ranges(ranges))
    }
    return send()
  }

  /// Waits and tries again, or ends the run. No request runs.
  mutating func retry(_ work: Work, after failure: TaskFailure) -> [Action] {
    if failure.code == .fetchesDiffer { tally.versions += 1 }
    guard let pause = tally.retries.pause(after: failure) else { return end(.failed(failure)) }
    state = .waiting(.retry, again(work, after: failure))
    return [.pause(milliseconds: pause)]
  }

  /// The work to continue with after a failure: a new probe, if the received bytes cannot be resumed.
  private func again(_ work: Work, after failure: TaskFailure) -> Work {
    let isStale = Self.staleCodes.contains(failure.code)
    switch work {
    case .probing(var probe):
      if isStale { probe.wasAdmitted = false }
      return .probing(probe)
    case .ranges(var ranges):
      if isStale { (ranges.resolved, ranges.expired) = (nil, nil) }
      guard !ranges.version.isResumable else { return .ranges(ranges) }
      // Nothing of it can be resumed, and the range of a first request must come within minutes.
      return .probing(
        Probe(generation: work.subject.nextGeneration, question: .whole, wasAdmitted: ranges.resolved != nil))
    case .whole:
      return .probing(Probe(generation: work.subject.nextGeneration, question: .whole, wasAdmitted: !isStale))
    case .comparing where failure.code == .fetchesDiffer:
      // Either body may be the one that is cut.
      return .probing(Probe(generation: work.subject.nextGeneration, question: .whole, wasAdmitted: true))
    case .comparing, .sealing: return work
    }
  }

  /// The request that seals the download failed. All bytes are there, and every answer so far named the same version.
  /// So the run still completes: the server may refuse one more request, or the source may be gone by now.
  private mutating func unsealed(_ seal: Seal, _ failure: TaskFailure, _ running: Running) -> [Action] {
    let work = Work.sealing(seal)
    let mayPass =
      failure.class == .retry && !isRefusal(failure, running, work) || isStale(failure, running, work)
    guard mayPass, let pause = tally.retries.pause(after: failure) else { return complete(seal.version) }
    var seal = seal
    // A signed URL that the source redirected to may have expired.
    seal.resolved = nil
    state = .waiting(.retry, .sealing(seal))
    return [.pause(milliseconds: pause)]
  }

  /// Whether the source's own server denies access, and has not accepted a request before. Then a new try does not
  /// help. A redirect is different: it may lead to a fresh URL. So is a server that accepted a request before: it may
  /// only limit how many.
  private func isRefusal(_ failure: TaskFailure, _ running: Running, _ work: Work) -> Bool {
    guard failure.code == .http(401) || failure.code == .http(403), !work.isAdmitted else { return false }
    return running.place.url == source || hasCredential && running.place.isAtOrigin
  }

  /// Only another credential can help: reads it again, but only once as long as nothing comes.
  private mutating func refused(_ failure: TaskFailure, _ work: Work) -> [Action] {
    var failure = failure
    failure.class = .fail
    guard hasCredential, !tally.hasReadCredential else { return end(.failed(failure)) }
    tally.hasReadCredential = true
    state = .waiting(.credential(failure), work)
    return [.refreshCredential]
  }

  /// The credential was read again. `isNew` is true if it has changed.
  mutating func credentialRefreshed(isNew: Bool) -> [Action] {
    guard case .waiting(.credential(let refusal), let work) = state else { return [] }
    state = .working(work)
    return isNew ? send() : end(.failed(refusal))
  }

  /// Whether a signed URL, to which the source redirected earlier, may have expired. The source then gives a fresh one.
  private func isStale(_ failure: TaskFailure, _ running: Running, _ work: Work) -> Bool {
    work.isAdmitted && running.place.url != source && Self.staleCodes.contains(failure.code)
  }

  static let staleCodes: Set<TaskFailure.Code> = [.http(400), .http(401), .http(403), .http(404), .http(410)]

  /// ``Action/pause(milliseconds:)`` is over.
  mutating func retryDue() -> [Action] {
    guard case .waiting(.retry, let work) = state else { return [] }
    state = .working(work)
    return send()
  }
}
