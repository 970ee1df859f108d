import TaskCore

extension DownloadMachine {
  /// The first `received` bytes of request `id`'s body are written.
  mutating func wrote(_ id: Int, received: Int64) {
    guard let running = requests[id], let chunk = running.chunk else { return }
    changeRanges { $0.plan.advance(chunk, to: running.offset + received) }
  }

  /// Request `id` has ended at `place`, after redirects, and `received` bytes of its body are written. It took so many
  /// milliseconds, `delay` of them before its answer began. `isSurplus`: the host refused it, but serves others of this
  /// process.
  mutating func ended(
    _ id: Int, at place: Place, received: Int64, _ interruption: Interruption?, milliseconds: Int64,
    delay: Int64? = nil, isSurplus: Bool = false
  ) -> [Action] {
    guard var running = requests[id] else { return [] }
    requests[id] = nil
    running.place = place
    running.isSurplus = isSurplus
    if let delay { changeRanges { $0.plan.delay = delay } }
    tally.endedBytes += max(0, received - (running.arrived ?? 0))
    running.arrived = received
    switch state {
    case .restarting, .ending: return settle()
    case .waiting, .complete, .ended: return []
    case .working(let work): return ended(running, in: work, received: received, interruption, milliseconds)
    }
  }

  private mutating func ended(
    _ running: Running, in work: Work, received: Int64, _ interruption: Interruption?, _ milliseconds: Int64
  ) -> [Action] {
    let work = close(running, in: work, received: received)
    state = .working(work)
    switch running.answer {
    case .accepted where running.isRetired, nil where running.isRetired: return send()
    case .accepted(let count):
      if received >= 1 << 16 {
        // The credential is accepted. It may expire, too.
        tally.hasReadCredential = false
        // Bytes that are fetched again after a failure are no progress.
        if case .ranges(let ranges) = work, ranges.version.isResumable { tally.retries.reset() }
      }
      if running.isWhole(count, received: received, interruption) {
        if received >= limits.firstChunk || milliseconds >= 250 {
          server.requestRate = received * 1000 / max(1, milliseconds)
        }
        if received == 0, case .whole(let whole) = work, whole.needsProof {
          // Two such bodies are equal, and yet prove nothing.
          let reason = "the body is empty, and does not say that it is whole"
          return failed(.badResponse(reason, url: running.place.url), running, work)
        }
        return arrived(received, work)
      }
      if var refusal = refusal(ofBody: received, interruption) {
        if case .whole(let whole) = work, !whole.isDelimited, interruption == nil, tally.undelimited != received {
          // It may have been cut, but hardly twice at the same byte.
          tally.undelimited = received
          refusal.class = .retry
          return failed(refusal, running, work)
        }
        return end(.failed(refusal))
      }
      if case .comparing(let version) = work, interruption?.isOwn ?? true {
        let size = version.identity.size ?? 0
        let seen = interruption == nil ? "\(received)" : "more"
        return failed(.fetchesDiffer(size, seen), running, work)
      }
      return failed(Self.failure(ofBody: interruption, url: running.place.url), running, work)
    case .changed(let mismatch): return changed(mismatch, work)
    case .unranged: return unranged(running, work)
    case .same:
      guard case .sealing(let seal) = work else { return send() }
      return complete(seal.version)
    case .returned: return send()
    case .failed(let failure): return failed(failure, running, work)
    case .misdirected(let failure): return end(.failed(failure))
    case nil:
      return failed(
        interruption?.failure ?? .badResponse("the server sent no response", url: running.place.url), running, work)
    }
  }

  private static func failure(ofBody interruption: Interruption?, url: String) -> TaskFailure {
    guard let interruption else { return .badResponse("the body is shorter than announced", url: url) }
    return interruption.isOwn ? .badResponse("the body is longer than announced", url: url) : interruption.failure
  }

  /// Gives the missing rest of the chunk back to the scheduler, so that other requests fetch it.
  private func close(_ ended: Running, in work: Work, received: Int64) -> Work {
    guard case .ranges(var ranges) = work, let chunk = ended.chunk else { return work }
    ranges.plan.advance(chunk, to: ended.offset + received)
    ranges.plan.close(chunk)
    return .ranges(ranges)
  }

  private mutating func arrived(_ received: Int64, _ work: Work) -> [Action] {
    switch work {
    case .comparing(let version): return complete(version)
    case .probing, .ranges, .sealing:
      tally.retries.reset()
      return send()
    case .whole(var whole):
      whole.version.identity.size = received
      // A body that proves nothing is no progress: one that is always cut would be fetched for ever.
      if whole.needsProof {
        state = .waiting(.inspection, .whole(whole))
        return [.inspect(bytes: received)]
      }
      tally.retries.reset()
      state = .working(.whole(whole))
      if let refusal = refusal(of: received) { return end(.failed(refusal)) }
      return seal(whole)
    }
  }

  private mutating func seal(_ whole: Whole) -> [Action] {
    let seal = Seal(version: whole.version, received: ByteRanges(), isWhole: true, resolved: whole.place)
    return allBytesAreThere(seal, isNeeded: whole.needsSeal)
  }

  /// The written bytes have been looked at. If their boxes do not add up, a second body must have the same bytes.
  mutating func inspected(addsUp: Bool) -> [Action] {
    guard case .waiting(.inspection, .whole(var whole)) = state else { return [] }
    if addsUp {
      tally.retries.reset()
      whole.version.proof = .container
      state = .working(.whole(whole))
      return seal(whole)
    }
    state = .working(.comparing(.unproven(whole.version.identity, generation: whole.version.generation)))
    return send()
  }
}

// New beginnings, and the end.
extension DownloadMachine {
  /// The source has another version now: all bytes so far are void, unless the former version comes back.
  private mutating func changed(_ mismatch: IdentityMismatch, _ work: Work) -> [Action] {
    tally.versions += 1
    guard tally.versions <= limits.generations else {
      let message = "the source changes between answers: \(mismatch)"
      return end(.failed(TaskFailure(code: .sourceChanging, message: message, class: .retry)))
    }
    if case .sealing(let seal) = work, seal.isWhole, !mismatch.isOfSize {
      // Every answer of this source may have validators of its own. If a second body is equal, it has not changed.
      state = .working(.comparing(.unproven(seal.version.identity, generation: seal.version.generation)))
      return send()
    }
    guard !mismatch.isOfSize, tally.versions > 2 else { return restart(.first(former: work.received)) }
    // The source's servers may name the same bytes differently: one connection stays with one of them, and one answer
    // is of one version in any case.
    server.isPinned = true
    return restart(tally.versions > 3 ? .whole : .first(former: work.received))
  }

  /// The server does not send the part: first asks without `If-Range`, in which some servers accept only a date, then
  /// without a range.
  private mutating func unranged(_ running: Running, _ work: Work) -> [Action] {
    if case .part = running.request.asked, running.request.ifRange != nil {
      server.usesIfRange = false
      return send()
    }
    guard work.received?.received.isEmpty == false else { return restart(.whole) }
    // Some of a server's answers may be so: what is there is not thrown away for one of them.
    var running = running
    running.isMisranged = true
    return failed(.badResponse("the server does not send the range", url: running.place.url), running, work)
  }

  /// The bytes do not have the expected digest: fetches them again, but only once.
  mutating func digestMismatched(_ mismatch: DigestMismatch) -> [Action] {
    if case .complete(let version) = state, version.proof == .twoFetches {
      let size = version.identity.size ?? 0
      let work = Work.comparing(version)
      return retry(work, after: .fetchesDiffer(size, "\(size) other"))
    }
    tally.digestFailures += 1
    guard tally.digestFailures < 2 else {
      let message = "\(mismatch); the file was fetched twice"
      return end(.failed(TaskFailure(code: .digestMismatch, message: message, class: .fail)))
    }
    return restart(.first(former: nil))
  }

  /// Starts anew when all requests have ended; a known version's file gets a new generation.
  mutating func restart(_ question: Probe.Question) -> [Action] {
    state = .restarting(Probe(generation: state.subject.nextGeneration, question: question))
    return cancelAll() + settle()
  }

  mutating func end(_ end: End) -> [Action] {
    switch state {
    case .ending, .ended: return []
    case .working, .waiting, .complete, .restarting: break
    }
    state = .ending(end, state.subject)
    return cancelAll() + settle()
  }

  private func cancelAll() -> [Action] {
    requests.ids.map { .cancel($0) }
  }

  /// Continues a restart or an end that waited for the last request.
  private mutating func settle() -> [Action] {
    guard requests.isEmpty else { return [] }
    switch state {
    case .restarting(let probe):
      state = .working(.probing(probe))
      return send()
    case .ending(let end, let subject):
      state = .ended(subject)
      return [.end(end)]
    case .working, .waiting, .complete, .ended: return []
    }
  }
}

extension DownloadMachine.Running {
  /// Whether all wanted bytes of an accepted response have arrived. The response announced `count` bytes.
  fileprivate func isWhole(_ count: Int64?, received: Int64, _ interruption: Interruption?) -> Bool {
    if let shortened, received >= shortened { return true }
    return interruption == nil && (count == nil || received == count)
  }
}
