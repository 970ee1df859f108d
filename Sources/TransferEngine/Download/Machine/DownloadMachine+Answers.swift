import TaskCore

extension DownloadMachine {
  /// Decides what to do with the body of the answer to request `id`. Called when the head has arrived.
  mutating func answered(_ answer: SourceAnswer, from place: Place, of id: Int) -> (Reception, [Action]) {
    guard case .working(let work) = state, requests[id] != nil else { return (.refuse, []) }
    requests[id]?.place = place
    switch (answer, work) {
    case (.part(let range, let identity), .probing(let probe)):
      return begin(probe, with: range, of: identity, id)
    case (.part(let range, _), .ranges(let ranges)):
      return accept(range, ranges, id)
    case (.part, .sealing), (.unranged, .sealing):
      return refuse(id, .same)
    case (.whole(let identity, let isDelimited), .probing(let probe)):
      return accept(whole: identity, isDelimited: isDelimited, probe, id)
    case (.whole(let identity, _), .comparing(let version)):
      return compare(identity, with: version, id)
    case (.part, .whole), (.part, .comparing), (.whole, .ranges), (.whole, .whole), (.whole, .sealing):
      return refuse(id, .failed(.badResponse("the response does not fit the request", url: place.url)))
    case (.changed(let mismatch), _):
      return refuse(id, .changed(mismatch))
    case (.unranged, _):
      return refuse(id, .unranged)
    case (.refused(let failure, let ofRange), _):
      requests[id]?.isMisranged = ofRange
      return refuse(id, .failed(failure))
    case (.status(let failure), _):
      if case .first? = requests[id]?.request.asked {
        requests[id]?.isMisranged = Self.rangeCodes.contains(failure.code)
      }
      requests[id]?.answer = .failed(failure)
      return (.skip, [])
    case (.misdirected(let failure), _):
      requests[id]?.answer = .misdirected(failure)
      return (.skip, [])
    }
  }

  /// Some servers answer so to every request for a range.
  private static let rangeCodes: Set<TaskFailure.Code> = [.http(400), .http(413)]

  private mutating func refuse(_ id: Int, _ answer: Running.Answer) -> (Reception, [Action]) {
    requests[id]?.answer = answer
    return (.refuse, [])
  }

  /// Accepts a part of a known version. What the server leaves out of the end is for other requests.
  private mutating func accept(_ range: Range<Int64>, _ ranges: Ranges, _ id: Int) -> (Reception, [Action]) {
    requests[id]?.answer = .accepted(count: Int64(range.count))
    for other in requests.ids where other < id && requests[other]?.answer == nil { requests[other]?.overtakenBy += 1 }
    var hasWork = false
    // Others may still have been on their way to a URL that has expired since.
    if ranges.resolved == nil, let running = requests[id], running.request.place == origin {
      let place = running.place
      var ranges = ranges
      (ranges.resolved, ranges.expired) = (place, nil)
      ranges.version.identity.finalURL = URLRedaction.redact(place.url)
      state = .working(.ranges(ranges))
      hasWork = true
    }
    if let chunk = requests[id]?.chunk {
      changeRanges { hasWork = $0.plan.release(chunk, from: range.upperBound) || hasWork }
    }
    // Another request may have taken over the end of this one in the meantime.
    let count = min(requests[id]?.shortened ?? .max, Int64(range.count))
    return (.write(offset: range.lowerBound, count: count), hasWork ? send() : [])
  }

  /// Of a version that has not the expected size. If bytes of another one are there, that one may come back: some servers
  /// of a source may be behind others.
  private func refusal(of size: Int64, _ probe: Probe) -> TaskFailure? {
    var refusal = refusal(of: size)
    if case .first(_?) = probe.question { refusal?.class = .retry }
    return refusal
  }

  /// Accepts the first part of a source that was unknown until now.
  private mutating func begin(
    _ probe: Probe, with range: Range<Int64>, of identity: SourceIdentity, _ id: Int
  ) -> (Reception, [Action]) {
    if let size = identity.size, let refusal = refusal(of: size, probe) { return refuse(id, .failed(refusal)) }
    let size = identity.size ?? range.upperBound
    guard range.upperBound == size || canUseRanges(identity) else {
      // Without a strong validator, two parts may belong to two versions. One response always belongs to one version.
      return refuse(id, .unranged)
    }
    let place = requests[id]?.place
    if case .first(let former?) = probe.question, former.version.identity.mismatch(with: identity) == nil {
      // The source has the former version again, or one of its servers still has it.
      let plan = ChunkScheduler(
        size: former.version.identity.size ?? 0, done: former.received, limits: limits.chunks)
      state = .working(.ranges(Ranges(version: former.version, plan: plan, resolved: place, needsSeal: true)))
      return refuse(id, .returned)
    }
    let version = Version(identity: identity, generation: probe.generation, isResumable: canUseRanges(identity))
    var plan = ChunkScheduler(size: size, limits: limits.chunks)
    if let chunk = plan.next(connections: 1, rate: nil)?.chunk {
      requests[id]?.chunk = chunk.id
      plan.release(chunk.id, from: range.upperBound)
    }
    requests[id]?.answer = .accepted(count: Int64(range.count))
    state = .working(
      .ranges(Ranges(version: version, plan: plan, resolved: place, needsSeal: size > limits.sealAbove)))
    let actions: [Action] = [.openStaging(generation: probe.generation, size: size)] + send()
    return (.write(offset: 0, count: requests[id]?.shortened ?? Int64(range.count)), actions)
  }

  private mutating func accept(
    whole identity: SourceIdentity, isDelimited: Bool, _ probe: Probe, _ id: Int
  ) -> (Reception, [Action]) {
    guard isDelimited || expectation != nil || allowsUnframed, let place = requests[id]?.place else {
      let message = "the source does not say where its file ends: the task must expect a size or a digest"
      return refuse(id, .failed(TaskFailure(code: .lengthUnknown, message: message, class: .fail)))
    }
    if let size = identity.size, let refusal = refusal(of: size, probe) { return refuse(id, .failed(refusal)) }
    let version = Version(
      identity: identity, generation: probe.generation, isResumable: false,
      proof: !isDelimited && allowsUnframed ? expectation : nil)
    let needsSeal = (identity.size ?? .max) > limits.sealAbove && (identity.hasValidator || identity.size != nil)
    let needsProof = !isDelimited && expectation == nil
    state = .working(
      .whole(
        Whole(
          version: version, place: place, needsSeal: needsSeal, needsProof: needsProof, isDelimited: isDelimited)))
    let size = identity.size ?? expect.bytes
    requests[id]?.answer = .accepted(count: size)
    return (.write(offset: 0, count: size), [.openStaging(generation: probe.generation, size: size)])
  }

  /// The second body is only compared. Its validators do not matter: bytes that are equal are the same version.
  private mutating func compare(
    _ identity: SourceIdentity, with version: Version, _ id: Int
  ) -> (Reception, [Action]) {
    let size = version.identity.size ?? 0
    if let seen = identity.size, seen != size { return refuse(id, .failed(.fetchesDiffer(size, "\(seen)"))) }
    requests[id]?.answer = .accepted(count: size)
    return (.compare(count: size), [])
  }

  /// What the task expects of its file, the strongest of it.
  private var expectation: Verification? {
    if expect.sha256 != nil { return .sha256 }
    if expect.md5 != nil { return .md5 }
    return expect.bytes == nil ? nil : .bytes
  }

  /// The failure if a source of this size is not the expected one.
  func refusal(of size: Int64) -> TaskFailure? {
    guard let expected = expect.bytes, expected != size else { return nil }
    return sizeMismatch("\(size)", expected)
  }

  /// The same for a source that did not announce its size. Called when its body has ended or is longer than expected.
  func refusal(ofBody received: Int64, _ interruption: Interruption?) -> TaskFailure? {
    guard case .working(.whole(let whole)) = state, whole.version.identity.size == nil, let expected = expect.bytes
    else { return nil }
    if interruption?.isOwn == true { return sizeMismatch("more than \(expected)", expected) }
    return interruption == nil ? refusal(of: received) : nil
  }

  private func sizeMismatch(_ size: String, _ expected: Int64) -> TaskFailure {
    TaskFailure(
      code: .sizeMismatch, message: "the source has \(size) bytes, but \(expected) were expected", class: .fail)
  }
}
