import TaskCore

@testable import ReelhaulCurl
@testable import TransferEngine

/// The machine with the exchanges of its requests, connected as in ``Fetch`` and ``Download`` but without sockets and
/// files: heads and errors in, actions out. A redirected request comes again, with its new place.
@dynamicMemberLookup struct MachineDriver {
  typealias Request = DownloadMachine.Request
  typealias Action = DownloadMachine.Action

  private var machine: DownloadMachine
  private let source: CurlURL
  private let destination: StorageURL
  private var exchanges: [Int: (request: Request, exchange: Exchange)] = [:]

  init(
    source: CurlURL, destination: StorageURL, expect: Expectation, allowsUnframed: Bool = false, generation: Int,
    limits: DownloadLimits
  ) {
    self.source = source
    self.destination = destination
    machine = DownloadMachine(
      source: source.text, expect: expect, allowsUnframed: allowsUnframed, generation: generation, limits: limits)
  }

  subscript<Value>(dynamicMember path: KeyPath<DownloadMachine, Value>) -> Value { machine[keyPath: path] }

  mutating func begin(resuming checkpoint: DownloadCheckpoint?) -> [Action] {
    noting(machine.begin(resuming: checkpoint))
  }

  mutating func head(_ head: CurlHead, of id: Int, now: Int64) -> (Reception, [Action]) {
    guard let answer = exchanges[id]?.exchange.receive(head, now: now), let place = exchanges[id]?.exchange.place
    else { return (.skip, []) }
    let (reception, actions) = machine.answered(answer, from: place, of: id)
    return (reception, noting(actions))
  }

  mutating func wrote(_ id: Int, received: Int64) {
    machine.wrote(id, received: received)
  }

  mutating func ended(
    _ id: Int, received: Int64, error: CurlError?, milliseconds: Int64, delay: Int64? = nil, isSurplus: Bool = false
  ) -> [Action] {
    if var request = exchanges[id]?.request, exchanges[id]?.exchange.follow() == true {
      request.place = exchanges[id]?.exchange.place ?? request.place
      return [.request(request)]
    }
    guard let place = exchanges.removeValue(forKey: id)?.exchange.place else { return [] }
    let interruption = error.map { Interruption(failure: TaskFailure($0, url: place.url), isOwn: $0.code == .aborted) }
    return noting(
      machine.ended(
        id, at: place, received: received, interruption, milliseconds: milliseconds, delay: delay,
        isSurplus: isSurplus))
  }

  mutating func sampled(milliseconds: Int64, arrived: [(Int, Int64)], isHeldBack: Bool = false) -> [Action] {
    let sample = DownloadMachine.Sample(
      milliseconds: milliseconds, arrived: Dictionary(uniqueKeysWithValues: arrived), isHeldBack: isHeldBack)
    return noting(machine.sampled(sample))
  }

  /// The host gives this download at most so many connections.
  mutating func allow(_ connections: Int) { machine.server.governor.allowed = connections }

  /// The download is limited to so many bytes per second. Others may wait for a connection to the host.
  mutating func limit(to rate: Int64?, isAwaited: Bool) {
    machine.server.governor.wanted = rate
    machine.server.isAwaited = isAwaited
  }

  func isUnanswered(_ id: Int) -> Bool { machine.requests[id].map { $0.answer == nil } ?? false }

  mutating func retryDue() -> [Action] { noting(machine.retryDue()) }
  mutating func inspected(addsUp: Bool) -> [Action] { noting(machine.inspected(addsUp: addsUp)) }
  mutating func digestMismatched(_ mismatch: DigestMismatch) -> [Action] {
    noting(machine.digestMismatched(mismatch))
  }
  mutating func stop() -> [Action] { noting(machine.stop()) }

  /// The machine's state without its values.
  enum Phase: Equatable {
    case fetching
    case sealing
    case complete
    case restarting
    case ending(DownloadMachine.End)
    case ended
  }

  var phase: Phase {
    switch machine.state {
    case .working(.sealing), .waiting(_, .sealing): .sealing
    case .working, .waiting: .fetching
    case .complete: .complete
    case .restarting: .restarting
    case .ending(let end, _): .ending(end)
    case .ended: .ended
    }
  }

  private mutating func noting(_ actions: [Action]) -> [Action] {
    var options = DownloadOptions()
    options.limits = machine.limits
    for case .request(let request) in actions {
      exchanges[request.id] = (
        request, Exchange(request, source: source, destination: destination, options: options)
      )
    }
    return actions
  }
}

extension DownloadMachine.Request {
  var url: String { place.url }
  var isAtOrigin: Bool { place.isAtOrigin }
}
