import TaskCore

extension DownloadMachine {
  /// A request failed: another try, another credential, or the end.
  mutating func failed(_ failure: TaskFailure, _ running: Running, _ work: Work) -> [Action] {
    if case .sealing(let seal) = work { return unsealed(seal, failure, running) }
    if isRefusal(failure, running, work) { return refused(failure, work) }
    guard failure.class == .retry || isStale(failure, running, work) else { return end(.failed(failure)) }
    if !requests.isEmpty {
      // Others go on: the server may want fewer connections. One that had moved bytes may have broken for other reasons.
      if case .accepted = running.answer, running.arrived ?? 0 > 0 {
        server.governor.broke()
      } else {
        server.governor.refused()
      }
      return []
    }
    guard let pause = tally.retries.pause(after: failure) else { return end(.failed(failure)) }
    state = .waiting(.retry, again(work, after: failure))
    return [.pause(milliseconds: pause)]
  }

  /// What to go on with: where nothing can be resumed, a new probe.
  private func again(_ work: Work, after failure: TaskFailure) -> Work {
    let isStale = Self.staleCodes.contains(failure.code)
    switch work {
    case .probing(var probe):
      if isStale { probe.wasAdmitted = false }
      return .probing(probe)
    case .ranges(var ranges):
      if isStale { ranges.resolved = nil }
      guard !ranges.version.isResumable else { return .ranges(ranges) }
      return .probing(
        Probe(generation: work.subject.nextGeneration, wasAdmitted: ranges.resolved != nil))
    case .whole:
      return .probing(Probe(generation: work.subject.nextGeneration, question: .whole, wasAdmitted: !isStale))
    case .sealing: return work
    }
  }

  /// All bytes are there, of one version by every answer so far: whoever asks once more may be refused, or the source be
  /// gone by now.
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

  /// The source's own server does not let us in, and has not before: no redirect that may lead to a fresh URL, no server
  /// that has had enough of us.
  private func isRefusal(_ failure: TaskFailure, _ running: Running, _ work: Work) -> Bool {
    guard failure.code == .http(401) || failure.code == .http(403), !work.isAdmitted else { return false }
    return running.place.url == source || hasCredential && running.place.isAtOrigin
  }

  /// Only another credential can help: the worker's own is read again, once.
  private mutating func refused(_ failure: TaskFailure, _ work: Work) -> [Action] {
    var failure = failure
    failure.class = .fail
    guard hasCredential, !tally.hasReadCredential else { return end(.failed(failure)) }
    tally.hasReadCredential = true
    state = .waiting(.credential(failure), work)
    return [.refreshCredential]
  }

  /// The credential was read again, and is another one or not.
  mutating func credentialRefreshed(isNew: Bool) -> [Action] {
    guard case .waiting(.credential(let refusal), let work) = state else { return [] }
    state = .working(work)
    return isNew ? send() : end(.failed(refusal))
  }

  /// A signed URL that the source redirected to earlier has expired: the source gives a fresh one.
  private func isStale(_ failure: TaskFailure, _ running: Running, _ work: Work) -> Bool {
    work.isAdmitted && running.place.url != source && tally.retries.failures == 0
      && Self.staleCodes.contains(failure.code)
  }

  private static let staleCodes: Set<TaskFailure.Code> = [.http(400), .http(401), .http(403), .http(404), .http(410)]

  /// The time of ``Action/pause(milliseconds:)`` is over.
  mutating func retryDue() -> [Action] {
    guard case .waiting(.retry, let work) = state else { return [] }
    state = .working(work)
    return send()
  }
}
