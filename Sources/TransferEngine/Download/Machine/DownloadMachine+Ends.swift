import TaskCore

extension DownloadMachine {
  /// The first `received` bytes of request `id`'s body are written.
  mutating func wrote(_ id: Int, received: Int64) {
    guard let answered = running[id], let chunk = answered.chunk else { return }
    plan?.advance(chunk, to: answered.offset + received)
  }

  /// The download moved so many bytes per second since the last sample, about a second ago.
  mutating func sampled(throughput: Int64) -> [Action] {
    guard phase == .fetching, mode == .ranges, resolved != nil else { return [] }
    plan?.sampled()
    if throughput > 0 { governor.observe(throughput: throughput) }
    return send()
  }

  /// Request `id` is over, and `received` bytes of its body are written; its redirects led to `place`.
  mutating func ended(
    _ id: Int, at place: Place, received: Int64, _ interruption: Interruption?, milliseconds: Int64
  ) -> [Action] {
    guard var answered = running.removeValue(forKey: id) else { return [] }
    answered.place = place
    close(answered, received: received)
    switch phase {
    case .restarting, .ending: return settle()
    case .complete, .ended: return []
    case .fetching, .sealing: break
    }
    switch answered.answer {
    case .accepted(let count):
      if received >= 1 << 16, mode == .ranges { failures = 0 }
      if answered.isWhole(count, received: received, interruption) {
        connectionRate = received * 1000 / max(1, milliseconds)
        return arrived(received)
      }
      if let refusal = refusal(ofBody: received, interruption) { return end(.failed(refusal)) }
      return failed(Self.failure(ofBody: interruption, url: place.url), answered)
    case .changed(let mismatch): return changed(mismatch)
    case .unranged: return unranged(answered.request)
    case .same: return complete()
    case .returned: return send()
    case .failed(let failure): return failed(failure, answered)
    case .misdirected(let failure): return end(.failed(failure))
    case .none: return failed(interruption?.failure ?? .badResponse("no answer", url: place.url), answered)
    }
  }

  private static func failure(ofBody interruption: Interruption?, url: String) -> TaskFailure {
    guard let interruption else { return .badResponse("the body is shorter than announced", url: url) }
    return interruption.isOwn ? .badResponse("the body is longer than announced", url: url) : interruption.failure
  }

  /// What of its chunk has not arrived is fetched by others.
  private mutating func close(_ ended: Running, received: Int64) {
    guard let chunk = ended.chunk else { return }
    plan?.advance(chunk, to: ended.offset + received)
    plan?.close(chunk)
  }

  private mutating func arrived(_ received: Int64) -> [Action] {
    failures = 0
    if mode == .whole {
      identity?.size = received
      if let refusal = refusal(of: received) { return end(.failed(refusal)) }
      return allBytesAreThere()
    }
    return send()
  }

  /// The source is another version now: everything so far is void, unless that one comes back.
  private mutating func changed(_ mismatch: IdentityMismatch) -> [Action] {
    versions += 1
    guard versions <= limits.generations else {
      let message = "the source changes between answers: \(mismatch)"
      return end(.failed(TaskFailure(code: "source_changing", message: message, class: .retry)))
    }
    former = nil
    if isResumable, let identity, let plan {
      former = Version(identity: identity, generation: generation, received: plan.received)
    }
    return restart(wholly: false)
  }

  /// The server sends the whole for a part: ask without `If-Range`, which some honour with a date alone, then without
  /// a range.
  private mutating func unranged(_ request: Request) -> [Action] {
    if case .part = request.asked, request.ifRange != nil {
      usesIfRange = false
      return send()
    }
    return restart(wholly: true)
  }

  /// Begins anew on another generation, where the present one has bytes already.
  private mutating func restart(wholly: Bool) -> [Action] {
    forget()
    phase = .restarting
    resolved = nil
    mode = wholly ? .whole : .undecided
    return running.keys.sorted().map { .cancel($0) } + settle()
  }

  /// What was received is void, where something was.
  private mutating func forget() {
    if identity != nil { generation += 1 }
    identity = nil
    plan = nil
    isResumable = false
    if mode == .ranges { mode = .undecided }
  }

  private mutating func failed(_ failure: TaskFailure, _ answered: Running) -> [Action] {
    guard phase != .sealing else { return unsealed(failure, answered) }
    if isRefusal(failure, answered) { return refused(failure) }
    guard failure.class == .retry || isStale(failure, answered) else { return end(.failed(failure)) }
    if !running.isEmpty {
      // Others go on: the server may want fewer connections.
      governor.refused()
      return []
    }
    failures += 1
    guard failures <= limits.retries, (failure.retryAfter ?? 0) <= 2 else { return end(.failed(failure)) }
    if Self.staleCodes.contains(failure.code) { resolved = nil }
    if phase == .fetching, !isResumable { forget() }
    return pause(after: failure)
  }

  private mutating func pause(after failure: TaskFailure) -> [Action] {
    isPausing = true
    return [
      .pause(milliseconds: max(Int64(failure.retryAfter ?? 0) * 1000, limits.retryMilliseconds << (failures - 1)))
    ]
  }

  /// All bytes are there, of one version by every answer so far: whoever asks once more may be refused, or the source be
  /// gone by now.
  private mutating func unsealed(_ failure: TaskFailure, _ answered: Running) -> [Action] {
    let mayPass = failure.class == .retry && !isRefusal(failure, answered) || isStale(failure, answered)
    failures += 1
    guard mayPass, failures <= limits.retries, (failure.retryAfter ?? 0) <= 2 else { return complete() }
    // A signed URL that the source redirected to may have expired.
    resolved = nil
    return pause(after: failure)
  }

  /// The source's own server does not let us in, and has not before: no redirect that may lead to a fresh URL, no server
  /// that has had enough of us.
  private func isRefusal(_ failure: TaskFailure, _ answered: Running) -> Bool {
    guard failure.code == "http_401" || failure.code == "http_403", resolved == nil else { return false }
    return answered.place.url == source || hasCredential && answered.place.isAtOrigin
  }

  /// Only another credential can help: the worker's own is read again, once.
  private mutating func refused(_ failure: TaskFailure) -> [Action] {
    var failure = failure
    failure.class = .fail
    guard hasCredential, refusal == nil else { return end(.failed(failure)) }
    refusal = failure
    isPausing = true
    return [.refreshCredential]
  }

  /// The credential was read again, and is another one or not.
  mutating func credentialRefreshed(isNew: Bool) -> [Action] {
    guard isPausing, let refusal else { return [] }
    isPausing = false
    return isNew ? send() : end(.failed(refusal))
  }

  /// A signed URL that the source redirected to earlier has expired: the source gives a fresh one.
  private func isStale(_ failure: TaskFailure, _ answered: Running) -> Bool {
    resolved != nil && answered.place.url != source && failures == 0
      && Self.staleCodes.contains(failure.code)
  }

  private static let staleCodes: Set<String> = ["http_400", "http_401", "http_403", "http_404", "http_410"]

  /// The time of ``Action/pause(milliseconds:)`` is over.
  mutating func retryDue() -> [Action] {
    guard isPausing else { return [] }
    isPausing = false
    return send()
  }

  /// Nothing more is to be fetched: the task was paused, canceled or taken away.
  mutating func stop() -> [Action] {
    end(.stopped)
  }

  /// Something else failed: the disk, the store.
  mutating func fail(_ failure: TaskFailure) -> [Action] {
    end(.failed(failure))
  }

  /// The bytes do not have the expected digest: once, they are fetched anew.
  mutating func digestMismatched(_ mismatch: DigestMismatch) -> [Action] {
    digestFailures += 1
    guard digestFailures < 2 else {
      let message = "\(mismatch); it was fetched twice"
      return end(.failed(TaskFailure(code: "digest_mismatch", message: message, class: .fail)))
    }
    return restart(wholly: false)
  }

  private mutating func end(_ end: End) -> [Action] {
    switch phase {
    case .ending, .ended: return []
    case .fetching, .sealing, .complete, .restarting: break
    }
    phase = .ending(end)
    return running.keys.sorted().map { .cancel($0) } + settle()
  }

  /// Goes on with what waited for the last request's end.
  mutating func settle() -> [Action] {
    guard running.isEmpty else { return [] }
    switch phase {
    case .restarting:
      phase = .fetching
      isPausing = false
      return send()
    case .ending(let end):
      phase = .ended
      return [.end(end)]
    case .fetching, .sealing, .complete, .ended: return []
    }
  }
}

extension DownloadMachine.Running {
  /// Whether everything that was wanted of an accepted response, which announced `count` bytes, has come.
  fileprivate func isWhole(_ count: Int64?, received: Int64, _ interruption: Interruption?) -> Bool {
    if let shortened, received >= shortened { return true }
    return interruption == nil && (count == nil || received == count)
  }
}
