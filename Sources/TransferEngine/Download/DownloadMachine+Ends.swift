import ReelhaulCurl
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

  /// Request `id` is over, and `received` bytes of its body are written.
  mutating func ended(_ id: Int, received: Int64, error: CurlError?, milliseconds: Int64) -> [Action] {
    guard let answered = running.removeValue(forKey: id) else { return [] }
    let request = answered.request
    close(answered, received: received)
    switch phase {
    case .restarting, .ending: return settle()
    case .complete, .ended: return []
    case .fetching, .sealing: break
    }
    switch answered.answer {
    case .accepted(let count):
      if received >= 1 << 16, mode == .ranges { failures = 0 }
      if answered.isWhole(count, received: received, error: error) {
        connectionRate = received * 1000 / max(1, milliseconds)
        return arrived(received)
      }
      if let refusal = refusal(ofBody: received, error) { return end(.failed(refusal)) }
      return failed(Self.failure(ofBody: error, url: request.url), request)
    case .redirect(let target): return redirected(to: target, from: answered)
    case .changed(let mismatch): return changed(mismatch)
    case .unranged: return unranged(request)
    case .same: return complete()
    case .returned: return send()
    case .failed(let failure): return failed(failure, request)
    case .none:
      return failed(
        error.map { TaskFailure($0, url: request.url) } ?? .badResponse("no answer", url: request.url), request)
    }
  }

  private static func failure(ofBody error: CurlError?, url: String) -> TaskFailure {
    switch error?.code {
    case nil: .badResponse("the body is shorter than announced", url: url)
    case .aborted: .badResponse("the body is longer than announced", url: url)
    default: error.map { TaskFailure($0, url: url) } ?? .badResponse("no answer", url: url)
    }
  }

  /// What of its chunk has not arrived is fetched by others; after a redirect, by the request that follows it.
  private mutating func close(_ ended: Running, received: Int64) {
    guard let chunk = ended.chunk else { return }
    plan?.advance(chunk, to: ended.offset + received)
    if case .redirect = ended.answer { return }
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

  private mutating func redirected(to target: String, from answered: Running) -> [Action] {
    let hops = answered.hops + 1
    guard hops <= limits.redirects else {
      return end(.failed(redirect(.redirectLoop, "the source redirects more than \(limits.redirects) times")))
    }
    guard let next = answered.place.url.resolving(target), next.scheme == "http" || next.scheme == "https" else {
      return end(.failed(redirect(.redirectRefused, "the source redirects to what is no http or https URL")))
    }
    guard next.text.utf8.count <= TaskSpec.urlLimit else {
      return end(
        .failed(redirect(.redirectRefused, "the source redirects to a URL of more than \(TaskSpec.urlLimit) bytes")))
    }
    guard !next.hasCredentials else {
      return end(.failed(redirect(.redirectRefused, "the source redirects to a URL with credentials in it")))
    }
    let place = Place(url: next, isAtOrigin: answered.place.isAtOrigin && next.isSameOrigin(as: source))
    let request = ask(answered.request.asked, at: place, chunk: answered.chunk, hops: hops)
    guard let count = answered.shortened else { return [request] }
    running[lastRequest]?.shortened = count
    return [request, .shorten(lastRequest, count: count)]
  }

  private func redirect(_ code: TaskFailure.Code, _ message: String) -> TaskFailure {
    TaskFailure(code: code, message: message, class: .fail)
  }

  /// The source is another version now: everything so far is void, unless that one comes back.
  private mutating func changed(_ mismatch: IdentityMismatch) -> [Action] {
    versions += 1
    guard versions <= limits.generations else {
      let message = "the source changes between answers: \(mismatch)"
      return end(.failed(TaskFailure(code: .sourceChanging, message: message, class: .retry)))
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

  private mutating func failed(_ failure: TaskFailure, _ request: Request) -> [Action] {
    guard phase != .sealing else { return unsealed(failure, request) }
    if isRefusal(failure, request) { return refused(failure) }
    guard failure.class == .retry || isStale(failure, request) else { return end(.failed(failure)) }
    if !running.isEmpty {
      // Others go on: the server may want fewer connections.
      governor.refused()
      return []
    }
    failures += 1
    guard failures <= limits.retries, (failure.retryAfter ?? 0) <= 2 else { return end(.failed(failure)) }
    if isStale(failure.code) { resolved = nil }
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
  private mutating func unsealed(_ failure: TaskFailure, _ request: Request) -> [Action] {
    let mayPass = failure.class == .retry && !isRefusal(failure, request) || isStale(failure, request)
    failures += 1
    guard mayPass, failures <= limits.retries, (failure.retryAfter ?? 0) <= 2 else { return complete() }
    // A signed URL that the source redirected to may have expired.
    resolved = nil
    return pause(after: failure)
  }

  /// The source's own server does not let us in, and has not before: no redirect that may lead to a fresh URL, no server
  /// that has had enough of us.
  private func isRefusal(_ failure: TaskFailure, _ request: Request) -> Bool {
    guard failure.code == .http(401) || failure.code == .http(403), resolved == nil else { return false }
    return request.url == source.text || hasCredential && request.isAtOrigin
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
  private func isStale(_ failure: TaskFailure, _ request: Request) -> Bool {
    resolved != nil && request.url != source.text && failures == 0
      && isStale(failure.code)
  }

  /// The answers that servers give to a signed URL that has expired.
  private func isStale(_ code: TaskFailure.Code) -> Bool {
    code.httpStatus.map([400, 401, 403, 404, 410].contains) ?? false
  }

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
      return end(.failed(TaskFailure(code: .digestMismatch, message: message, class: .fail)))
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
  fileprivate func isWhole(_ count: Int64?, received: Int64, error: CurlError?) -> Bool {
    if let shortened, received >= shortened { return true }
    return error == nil && (count == nil || received == count)
  }
}
