import Curl
import TaskCore

extension DownloadMachine {
  /// Request `id` is over. `received` bytes of its body are written; `rate` is the whole download's, in bytes per second.
  mutating func ended(
    _ id: Int, received: Int64, error: CurlError?, milliseconds: Int64, rate: Int64
  ) -> [Action] {
    guard let answered = running.removeValue(forKey: id) else { return [] }
    let request = answered.request
    if mode == .ranges { plan?.finish(id, received: received, milliseconds: milliseconds) }
    switch phase {
    case .restarting, .ending: return settle()
    case .complete, .ended: return []
    case .fetching, .sealing: break
    }
    switch answered.answer {
    case .accepted(let count):
      if received >= 1 << 16 || (received > 0 && received == count), mode == .ranges { failures = 0 }
      if error == nil, count == nil || received == count {
        return arrived(received, rate: rate)
      }
      let failure =
        error.map { TaskFailure($0, url: request.url) } ?? .badResponse("the body was cut short", url: request.url)
      return failed(failure, request)
    case .redirect(let target): return redirected(to: target, from: answered)
    case .changed(let reason): return changed(reason)
    case .unranged: return unranged(request)
    case .same: return complete()
    case .failed(let failure): return failed(failure, request)
    case .none:
      return failed(
        error.map { TaskFailure($0, url: request.url) } ?? .badResponse("no answer", url: request.url), request)
    }
  }

  private mutating func arrived(_ received: Int64, rate: Int64) -> [Action] {
    failures = 0
    if mode == .whole {
      identity?.size = received
      if let refusal = refusal(of: received) { return end(.failed(refusal)) }
      return allBytesAreThere()
    }
    connections.chunkArrived(rate: rate, running: running.count + 1)
    return send()
  }

  private mutating func redirected(to target: String, from answered: Running) -> [Action] {
    hops += 1
    guard hops <= limits.redirects else {
      return end(.failed(refused("redirect_loop", "the source redirects more than \(limits.redirects) times")))
    }
    guard let next = answered.url.resolving(target), next.scheme == "http" || next.scheme == "https" else {
      return end(.failed(refused("redirect_refused", "the source redirects to what is no http or https URL")))
    }
    guard !next.hasCredentials else {
      return end(.failed(refused("redirect_refused", "the source redirects to a URL with credentials in it")))
    }
    return [ask(answered.request.asked, at: next)]
  }

  private func refused(_ code: String, _ message: String) -> TaskFailure {
    TaskFailure(code: code, message: message, class: .fail)
  }

  /// The source is another version now: everything so far is void.
  private mutating func changed(_ reason: String) -> [Action] {
    versions += 1
    guard versions <= limits.generations else {
      let message = "the source changes between answers: \(reason)"
      return end(.failed(TaskFailure(code: "source_changing", message: message, class: .retry)))
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
    hops = 0
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
    guard failure.class == .retry || isStale(failure, request) else {
      // All bytes are there, of one version by every answer so far; the source may be gone by now.
      return phase == .sealing && failure.class == .fail ? complete() : end(.failed(failure))
    }
    if !running.isEmpty {
      // Others go on: the server may want fewer connections.
      connections.connectionFailed(others: running.count)
      return []
    }
    failures += 1
    guard failures <= limits.retries, (failure.retryAfter ?? 0) <= 2 else { return end(.failed(failure)) }
    if Self.staleCodes.contains(failure.code) { resolved = nil }
    if phase == .fetching, !isResumable { forget() }
    if resolved == nil { hops = 0 }
    isPausing = true
    return [
      .pause(milliseconds: max(Int64(failure.retryAfter ?? 0) * 1000, limits.retryMilliseconds << (failures - 1)))
    ]
  }

  /// A signed URL that the source redirected to earlier has expired: the source gives a fresh one.
  private func isStale(_ failure: TaskFailure, _ request: Request) -> Bool {
    resolved != nil && request.url != source.text && failures == 0
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
  mutating func digestMismatched() -> [Action] {
    digestFailures += 1
    guard digestFailures < 2 else {
      let message = "the file does not have the expected digest, fetched twice"
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
