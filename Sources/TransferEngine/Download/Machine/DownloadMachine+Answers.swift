import TaskCore

extension DownloadMachine {
  /// The head of the answer to request `id` is there: what becomes of its body.
  mutating func answered(_ answer: SourceAnswer, from place: Place, of id: Int) -> (Reception, [Action]) {
    guard var answered = running[id] else { return (.refuse, []) }
    answered.place = place
    defer {
      // Another request may have taken a part of it meanwhile.
      answered.shortened = running[id]?.shortened
      running[id] = answered
    }
    switch answer {
    case .part where phase == .sealing:
      answered.answer = .same
    case .part(let range, let identity):
      return acceptPart(range, identity, &answered)
    case .whole(let identity, let isDelimited):
      return acceptWhole(identity, isDelimited: isDelimited, &answered)
    case .changed(let mismatch):
      answered.answer = .changed(mismatch)
    case .unranged:
      answered.answer = phase == .sealing ? .same : .unranged
    case .refused(let failure):
      answered.answer = .failed(failure)
    case .status(let failure):
      answered.answer = .failed(failure)
      return (.skip, [])
    case .misdirected(let failure):
      answered.answer = .misdirected(failure)
      return (.skip, [])
    }
    return (.refuse, [])
  }

  private mutating func acceptPart(
    _ range: Range<Int64>, _ identity: SourceIdentity, _ answered: inout Running
  ) -> (Reception, [Action]) {
    var actions: [Action] = []
    if case .first = answered.request.asked {
      guard let size = identity.size, let refusal = refusal(of: size) else {
        return begin(range, identity, &answered)
      }
      answered.answer = .failed(refusal)
      return (.refuse, [])
    }
    answered.answer = .accepted(count: Int64(range.count))
    if resolved == nil {
      resolved = answered.place
      self.identity?.finalURL = URLRedaction.redact(answered.place.url)
      running[answered.request.id] = answered
      actions = send()
    }
    let count = running[answered.request.id]?.shortened ?? Int64(range.count)
    return (.write(offset: range.lowerBound, count: count), actions)
  }

  /// The first part of a source that nothing was known of.
  private mutating func begin(
    _ range: Range<Int64>, _ identity: SourceIdentity, _ answered: inout Running
  ) -> (Reception, [Action]) {
    let size = identity.size ?? range.upperBound
    guard range.upperBound == size || canUseRanges(identity) else {
      // Parts that nothing ties together may be of two versions; one response is of one.
      answered.answer = .unranged
      return (.refuse, [])
    }
    if let former, former.identity.mismatch(with: identity) == nil {
      bring(back: former, from: answered.place)
      answered.answer = .returned
      return (.refuse, [])
    }
    former = nil
    self.identity = identity
    mode = .ranges
    isResumable = canUseRanges(identity)
    resolved = answered.place
    needsSeal = size > limits.sealAbove
    var plan = ChunkScheduler(size: size, limits: limits.chunks)
    answered.chunk = plan.next(connections: 1, rate: nil)?.chunk.id
    self.plan = plan
    answered.answer = .accepted(count: Int64(range.count))
    running[answered.request.id] = answered
    let actions: [Action] = [.openStaging(generation: generation, size: size)] + send()
    return (.write(offset: 0, count: running[answered.request.id]?.shortened ?? Int64(range.count)), actions)
  }

  /// The source has the version again that it had, or another of its servers does.
  private mutating func bring(back former: Version, from place: Place) {
    self.former = nil
    identity = former.identity
    generation = former.generation
    mode = .ranges
    isResumable = true
    needsSeal = true
    resolved = place
    plan = ChunkScheduler(size: former.identity.size ?? 0, done: former.received, limits: limits.chunks)
  }

  private mutating func acceptWhole(
    _ identity: SourceIdentity, isDelimited: Bool, _ answered: inout Running
  ) -> (Reception, [Action]) {
    guard isDelimited || expectsDigest || expect.bytes != nil else {
      let message = "the source does not tell where it ends: a length or a digest must be expected of it"
      answered.answer = .failed(TaskFailure(code: "length_unknown", message: message, class: .fail))
      return (.refuse, [])
    }
    if let size = identity.size, let refusal = refusal(of: size) {
      answered.answer = .failed(refusal)
      return (.refuse, [])
    }
    former = nil
    self.identity = identity
    mode = .whole
    isResumable = false
    resolved = answered.place
    needsSeal =
      (identity.size ?? .max) > limits.sealAbove
      && (identity.hasValidator || identity.size != nil)
    let size = identity.size ?? expect.bytes
    answered.answer = .accepted(count: size)
    return (.write(offset: 0, count: size), [.openStaging(generation: generation, size: size)])
  }

  /// Why a source of this size is not the one expected.
  func refusal(of size: Int64) -> TaskFailure? {
    guard let expected = expect.bytes, expected != size else { return nil }
    return sizeMismatch("\(size)", expected)
  }

  /// The same of a source that does not tell its size, once its body is over, or longer than expected.
  func refusal(ofBody received: Int64, _ interruption: Interruption?) -> TaskFailure? {
    guard mode == .whole, identity?.size == nil, let expected = expect.bytes else { return nil }
    if interruption?.isOwn == true { return sizeMismatch("more", expected) }
    return interruption == nil ? refusal(of: received) : nil
  }

  private func sizeMismatch(_ size: String, _ expected: Int64) -> TaskFailure {
    TaskFailure(
      code: "size_mismatch", message: "the source has \(size) bytes, \(expected) were expected", class: .fail)
  }
}
