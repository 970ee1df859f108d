import ReelhaulSystem
import TaskCore
import TaskStore
import TransferEngine

/// The runs of one worker, each in one phase, from its claim to the return of its handler.
///
/// A run is *current* while it owns its task. A run that lost its task, or did not stop in time, is *detached*: it may
/// write nothing more, and the table only waits for its handler, which may never return. If the end of a detached run's
/// task must still be written, the worker *hands back* the task instead of the run.
package struct RunTable: Sendable {
  /// Names one run. A task that is claimed again gets another run.
  package struct ID: Hashable, Comparable, Sendable {
    fileprivate let number: Int

    package static func < (a: ID, b: ID) -> Bool { a.number < b.number }
  }

  package enum Phase: Hashable, Sendable {
    /// Can transition to: stopping, detached, the end.
    case running
    /// The handler is to stop. Can transition to: detached, the end.
    case stopping(StopReason, since: BootInstant)
    /// The run no longer owns the task, and the handler has not returned. A run on a root that does not answer holds no
    /// slot, so that it delays no other task. Can transition to: itself once it is handed back, handingBack, the end.
    case detached(holdsSlot: Bool, isHandingBack: Bool)
    /// The handler has returned before the task was handed back. Can transition to: the end.
    case handingBack

    /// Nil if the run is not detached.
    fileprivate var detachedHoldsSlot: Bool? {
      if case .detached(let holdsSlot, _) = self { holdsSlot } else { nil }
    }

    fileprivate var isHandingBack: Bool {
      switch self {
      case .running, .stopping: false
      case .detached(_, let isHandingBack): isHandingBack
      case .handingBack: true
      }
    }
  }

  package enum Action: Hashable, Sendable {
    /// Cancel the handler, so that it records its progress and returns.
    case stop(ID, StopReason)
    /// Refuse every further write of the run, and cancel its handler.
    case detach(ID)
    /// Write the end of the task of a detached run; answer with ``handedBack(_:)``. The reason is why the run had to
    /// stop; nil if it did not have to.
    case handBack(ID, RunOutcome, StopReason?)
  }

  package struct Run: Sendable {
    package let claim: Claim
    /// The worker of the lease under which the task was claimed.
    package let worker: WorkerID
    /// When the run is stopped at the latest.
    fileprivate let deadline: BootInstant?
    /// Nil if what happens to it tells nothing of one server.
    fileprivate let peer: TaskServer?
    /// When it began, or stood in line last.
    fileprivate private(set) var askedAt: BootInstant
    /// When its peer has served it last, or it began.
    fileprivate private(set) var servedAt: BootInstant
    private var servedBytes: Int64
    package fileprivate(set) var phase: Phase
    fileprivate var meter: ProgressMeter
    fileprivate private(set) var server: String?
    /// Since when it has stood in line for a connection; nil if it does not.
    fileprivate private(set) var inLineSince: BootInstant?

    fileprivate init(_ claim: Claim, worker: WorkerID, deadline: BootInstant?, meter: ProgressMeter) {
      self.claim = claim
      self.worker = worker
      self.deadline = deadline
      self.meter = meter
      peer = TaskServer(claim.spec)
      phase = .running
      askedAt = meter.lastProgress
      servedAt = askedAt
      servedBytes = meter.reading.bytesDone
    }

    /// Whether it sends to its peer. What it has given to a connection, the peer may never get.
    fileprivate var sends: Bool { claim.spec.destination.map { !StorageURL.hasScheme($0.utf8) } ?? false }

    fileprivate mutating func observe(_ place: HostLine.Place, now: BootInstant) {
      server = place.server
      inLineSince = place.isInLine ? inLineSince ?? now : nil
      if place.isInLine { askedAt = now }
    }

    /// Returns whether its peer has served it since the last call. A redirect may have led to another server.
    fileprivate mutating func observe(servedBytes bytes: Int64, now: BootInstant) -> Bool {
      // What a file had before may be read again.
      let isMore = bytes > servedBytes
      servedBytes = max(bytes, servedBytes)
      guard isMore, let peer, let server, peer.isAt(server) else { return false }
      servedAt = now
      return true
    }

    fileprivate func sample(_ reading: ProgressMeter.Reading) -> ProgressSample {
      ProgressSample(
        taskID: claim.spec.id, epoch: claim.epoch, bytesDone: reading.bytesDone, bytesTotal: reading.bytesTotal,
        rate: reading.rate)
    }
  }

  /// How many tasks may run at once.
  private let concurrency: Int
  private let watchdog: Watchdog
  private var runs: [ID: Run] = [:]
  /// The current run of every task that runs here.
  private var current: [UniqueID: ID] = [:]
  /// All other runs; usually there is none.
  private var former: Set<ID> = []
  private var lastNumber = 0
  private var lines: HostLines
  private var outages = ServerOutages()
  /// How often progress was taken.
  private var rounds = (published: 0, renewed: 0)
  /// About so many samples are published in one call.
  private static let publishedAtOnce = 256

  package init(concurrency: Int, watchdog: Watchdog) {
    self.concurrency = concurrency
    self.watchdog = watchdog
    lines = HostLines(concurrency: concurrency)
  }

  // MARK: State

  /// How many more runs may begin.
  package var free: Int {
    max(0, concurrency - current.count - count { $0.detachedHoldsSlot == true })
  }

  /// How many tasks run here.
  package var running: Int { current.count }

  /// Whether the handler of a detached run has not returned. It may wait for something that never comes.
  package var hasDetached: Bool { count { $0.detachedHoldsSlot != nil } > 0 }

  /// Whether no task runs here, and no task has still to be handed back.
  package var isIdle: Bool { current.isEmpty && count(\.isHandingBack) == 0 }

  /// Whether the task runs here.
  package func isRunning(_ task: UniqueID) -> Bool { current[task] != nil }

  /// Nil once the run has ended.
  package subscript(id: ID) -> Run? { runs[id] }

  /// Why the run ends, which decides what is written for its task. Nil if it ends by itself, ``StopReason/abandoned``
  /// if it no longer owns the task.
  package func stopReason(of id: ID) -> StopReason? {
    switch runs[id]?.phase {
    case .running: nil
    case .stopping(let reason, _): reason
    case .detached, .handingBack, nil: .abandoned
    }
  }

  // MARK: Beginning and ending

  /// Begins the run of a claimed task. `meter` begins with the task's recorded progress.
  package mutating func begin(
    _ claim: Claim, under worker: WorkerID, meter: ProgressMeter, deadline: BootInstant? = nil
  ) -> ID {
    lastNumber += 1
    let id = ID(number: lastNumber)
    // The store released the task and gave it to this worker again before the answer to the release came. The former
    // run still waits for that answer, and has nothing more to write.
    if let former = current[claim.spec.id] {
      detach(former, claim.spec.id, .detached(holdsSlot: true, isHandingBack: false))
    }
    current[claim.spec.id] = id
    runs[id] = Run(claim, worker: worker, deadline: deadline, meter: meter)
    return id
  }

  /// The handler has returned, and the end of its task is written if the run still owned it.
  package mutating func returned(_ id: ID) {
    switch runs[id]?.phase {
    case .running, .stopping:
      if let run = runs.removeValue(forKey: id) { current[run.claim.spec.id] = nil }
    case .detached(_, isHandingBack: false): forget(id)
    case .detached(_, isHandingBack: true): runs[id]?.phase = .handingBack
    case .handingBack, nil: break
    }
  }

  /// The task of a detached run is handed back, or has another owner.
  package mutating func handedBack(_ id: ID) {
    switch runs[id]?.phase {
    case .detached(let holdsSlot, _): runs[id]?.phase = .detached(holdsSlot: holdsSlot, isHandingBack: false)
    case .handingBack: forget(id)
    case .running, .stopping, nil: break
    }
  }

  private mutating func forget(_ id: ID) {
    former.remove(id)
    runs[id] = nil
  }

  // MARK: Stopping

  /// Stops the run of `task`. A run that is already stopping keeps its reason.
  package mutating func stop(_ task: UniqueID, _ reason: StopReason, now: BootInstant) -> [Action] {
    guard let id = current[task], case .running? = runs[id]?.phase else { return [] }
    runs[id]?.phase = .stopping(reason, since: now)
    return [.stop(id, reason)]
  }

  /// Stops every run.
  package mutating func stopAll(_ reason: StopReason, now: BootInstant) -> [Action] {
    currentRuns { _ in true }.flatMap { stop($1.claim.spec.id, reason, now: now) }
  }

  /// Detaches all runs of the lost lease of `worker`. Their tasks are lost with it, so none is handed back.
  package mutating func leaseLost(_ worker: WorkerID) -> [Action] {
    currentRuns { $0.worker == worker }.map { id, run in
      detach(id, run.claim.spec.id, .detached(holdsSlot: true, isHandingBack: false))
      return .detach(id)
    }
  }

  /// Hands back the tasks that use `root`, because this storage does not answer.
  package mutating func rootHangs(_ root: String, _ failure: TaskFailure) -> [Action] {
    // At most `concurrency` runs may exist without a slot, so that the number of hanging runs is limited.
    var left = concurrency - count { $0.detachedHoldsSlot == false }
    return currentRuns { LaneKey($0.claim.spec).storages.contains(root) }.flatMap { id, run in
      left -= 1
      return handBack(id, run, .failed(failure), holdsSlot: left < 0)
    }
  }

  private mutating func handBack(_ id: ID, _ run: Run, _ outcome: RunOutcome, holdsSlot: Bool) -> [Action] {
    let reason = stopReason(of: id)
    detach(id, run.claim.spec.id, .detached(holdsSlot: holdsSlot, isHandingBack: true))
    return [.detach(id), .handBack(id, outcome, reason)]
  }

  private mutating func detach(_ id: ID, _ task: UniqueID, _ phase: Phase) {
    current[task] = nil
    former.insert(id)
    runs[id]?.phase = phase
  }

  // MARK: Watching

  /// Records the progress of a run. `pulses` counts its signs of life other than bytes, `recorded` the bytes that its last
  /// checkpoint has.
  package mutating func observe(
    _ id: ID, bytesDone: Int64, bytesTotal: Int64?, recorded: Int64 = 0, pulses: Int,
    at place: HostLine.Place = .init(),
    now: BootInstant
  ) {
    guard let run = runs[id] else { return }
    runs[id]?.meter.observe(bytesDone: bytesDone, bytesTotal: bytesTotal, pulses: pulses, now: now)
    runs[id]?.observe(place, now: now)
    if runs[id]?.observe(servedBytes: run.sends ? recorded : bytesDone, now: now) == true, let peer = run.peer {
      outages.moved(id, at: peer, now: now)
    }
  }

  /// Stops the runs that make no progress or take too long. Hands back the tasks of runs that should have stopped and
  /// did not.
  package mutating func look(now: BootInstant) -> [Action] {
    var actions: [Action] = []
    for (_, run) in currentRuns(where: { $0.deadline.map { now >= $0 } ?? false }) {
      actions += stop(run.claim.spec.id, .timedOut, now: now)
    }
    for (id, run) in currentRuns(where: { verdict($0, now) != .fine }) {
      switch verdict(run, now) {
      case .fine: break
      case .stop: actions += stop(run.claim.spec.id, .stalled, now: now)
      case .detach: actions += handBack(id, run, .stopped, holdsSlot: true)
      }
    }
    return actions
  }

  private func verdict(_ run: Run, _ now: BootInstant) -> Watchdog.Verdict {
    var toldToStop: BootInstant?
    if case .stopping(_, let since) = run.phase { toldToStop = since }
    return watchdog.verdict(lastProgress: run.meter.lastProgress, toldToStop: toldToStop, now: now)
  }

  /// The progress that is worth publishing since the last call. Where very many tasks run, a call looks at a part of them,
  /// and the next calls at the others.
  package mutating func takePublished() -> [ProgressSample] {
    var samples: [ProgressSample] = []
    rounds.published += 1
    let parts = current.count / Self.publishedAtOnce + 1
    for id in current.values where (id.number + rounds.published) % parts == 0 {
      guard let reading = runs[id]?.meter.takePublished(), let run = runs[id] else { continue }
      samples.append(run.sample(reading))
    }
    return samples
  }

  /// The progress that the next renewal of the lease of `worker` records; of more than `atOnce` tasks a part, as in
  /// ``takePublished()``.
  package mutating func takeRenewed(of worker: WorkerID, atOnce: Int, now: BootInstant) -> [ProgressSample] {
    var samples: [ProgressSample] = []
    rounds.renewed += 1
    let parts = current.count / atOnce + 1
    for id in current.values where (id.number + rounds.renewed) % parts == 0 && runs[id]?.worker == worker {
      guard let reading = runs[id]?.meter.takeRenewed(now: now), let run = runs[id] else { continue }
      samples.append(run.sample(reading))
    }
    return samples
  }

  // MARK: Hosts

  /// Notes a refusal of the host. If the host serves tasks of other workers instead, the attempt does not count.
  package mutating func judge(_ failure: TaskFailure, of id: ID, now: BootInstant) -> TaskFailure {
    guard failure.class == .retry, failure.code.isRefusal, let run = runs[id] else { return failure }
    let host = LaneKey(run.claim.spec).host
    let servesOthers = current.values.contains { other in
      other != id
        && runs[other].map { $0.meter.reading.rate > 0 && LaneKey($0.claim.spec).host == host } ?? false
    }
    var failure = failure
    if lines.refused(by: host, servesOthers: servesOthers, now: now) { failure.class = .wait }
    return failure
  }

  /// What a failure tells of its server; nil if nothing. `server`: where the last request went; nil if nowhere. `newBytes`:
  /// what the run has recorded.
  package mutating func suspect(
    _ failure: TaskFailure, of id: ID, at server: String?, newBytes: Int64, now: BootInstant
  ) -> ServerFailure? {
    guard let run = runs[id], let peer = run.peer else { return nil }
    // A redirect may have led to another server.
    guard server.map(peer.isAt) ?? true else { return nil }
    if newBytes > 0 { outages.served(peer, at: run.servedAt) }
    guard let sign = failure.code.signOfOutage else {
      // A server in trouble may answer, too: only a final answer shows that it is well.
      if server != nil, failure.class == .fail, failure.code.isAnswer { outages.served(peer, at: now) }
      return nil
    }
    guard failure.class == .retry else { return nil }
    if let time = outages.lastMove(at: peer, besides: id, now: now) {
      outages.served(peer, at: time)
      // What was served before the run asked tells nothing of a server that has just gone.
      if time >= run.askedAt { return nil }
    }
    let wasServed = (run.claim.checkpoint?.bytesDone ?? 0) > 0
    return outages.failed(run.claim.spec.id, at: peer, failure, sign, wasServed: wasServed, now: now)
  }

  /// The run has succeeded: its server serves, if it was asked. It has just confirmed what was sent or deleted; what was
  /// fetched has been checked and published since.
  package mutating func succeeded(_ id: ID, at server: String?, now: BootInstant) {
    guard server != nil, let run = runs[id], let peer = run.peer else { return }
    let isConfirmed = run.sends || run.claim.spec.kind == .delete
    outages.served(peer, at: isConfirmed ? now : max(run.servedAt, run.askedAt))
  }

  /// When servers have served last, if the store does not know it yet: see ``told(_:)``.
  package mutating func served(now: BootInstant) -> [TaskServer: BootInstant] {
    outages.untold(now: now)
  }

  /// The store knows when these have served.
  package mutating func told(_ servers: [TaskServer: BootInstant]) {
    outages.told(servers)
  }

  /// How many tasks of a host are of use at once, for hosts where tasks of `worker` stand in line or are refused.
  package mutating func hostLimits(of worker: WorkerID, now: BootInstant) -> [String: HostLimit] {
    let isAnyInLine = current.values.contains { runs[$0]?.inLineSince != nil }
    guard isAnyInLine || !lines.isEmpty else { return [:] }
    var hosts: [String: HostLines.Host] = [:]
    for run in current.values.compactMap({ runs[$0] }) where run.worker == worker && run.phase == .running {
      // A copy between two servers may stand in line at either: it tells nothing of its host.
      let isAtHost = !run.claim.spec.copiesBetweenServers
      hosts[LaneKey(run.claim.spec).host, default: .init()].add(
        at: isAtHost ? run.server : nil, inLineFor: isAtHost ? run.inLineSince?.duration(to: now) : nil,
        isMoving: run.meter.reading.rate > 0)
    }
    hosts[""] = nil
    return lines.limits(hosts, now: now)
  }

  /// The store gives out no more tasks of these hosts, and of no others, than are of use. Stops the runs that stand in line
  /// there, except for the first, which take the places that become free.
  package mutating func relieve(_ hosts: Set<String>, now: BootInstant) -> [Action] {
    lines.limited = hosts
    guard !hosts.isEmpty else { return [] }
    let inLine = currentRuns { run in
      run.phase == .running && !run.claim.spec.copiesBetweenServers
        && run.inLineSince.map { $0.duration(to: now) >= HostLines.patience } ?? false
    }
    return Dictionary(grouping: inLine) { LaneKey($0.1.claim.spec).host }
      .filter { $0.value.count > lines.reserve && lines.mayRelieve($0.key, now: now) }
      .flatMap { $0.value.dropFirst(lines.reserve).reversed() }
      .flatMap { stop($0.1.claim.spec.id, .crowded, now: now) }
  }

  // MARK: Looking through the table

  /// The current runs for which `isMeant` returns true, oldest first.
  private func currentRuns(where isMeant: (Run) -> Bool) -> [(ID, Run)] {
    var found: [(ID, Run)] = []
    for id in current.values {
      if let run = runs[id], isMeant(run) { found.append((id, run)) }
    }
    return found.sorted { $0.0 < $1.0 }
  }

  /// Counts among the runs that are not current.
  private func count(_ isMeant: (Phase) -> Bool) -> Int {
    former.count { runs[$0].map { isMeant($0.phase) } ?? false }
  }
}

extension TaskSpec {
  /// Whether it copies from a server to a server.
  fileprivate var copiesBetweenServers: Bool {
    kind == .copy && ![source, destination ?? ""].contains { StorageURL.hasScheme($0.utf8) }
  }
}
