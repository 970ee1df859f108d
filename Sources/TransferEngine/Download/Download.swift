import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One run of a download: the shell that carries out what ``DownloadMachine`` decides.
///
/// It lives on one engine loop. Everything it is told (heads, ends of requests, the end of a sync) is an event for the
/// machine, and every action only starts something whose end is told again.
// @unchecked: touched on its loop alone; `run` goes there first.
final class Download: @unchecked Sendable {
  let context: DownloadContext
  let spec: TaskSpec
  let source: CurlURL
  let destination: StorageURL
  let ledger: any DownloadLedger
  /// The header fields of the credential that the task names.
  private var credential: [HeaderField]
  var machine: DownloadMachine
  let throttle: Throttle
  let staging: StagingWriter
  /// What an earlier run left, and recorded of it.
  private let found: (file: StagingFile, checkpoint: DownloadCheckpoint)?
  private var fetches: [Int: (receiver: ChunkReceiver, task: Task<Void, any Error>)] = [:]
  /// Since all bytes are there.
  private var publication: Publication?
  private(set) var isPublishing = false
  /// Told to stop; while the file is being published the run goes on to its end or to the next step that can wait.
  private var isStopping = false
  /// Until the machine tries again.
  private var retry: LoopTimer?
  private var timer: LoopTimer?
  private var meter = Meter()
  /// Whose connections this run shares with others, once it has begun.
  private var host: String?
  private var completion: UnsafeContinuation<DownloadOutcome, Never>?

  /// When the last sample was taken, whether the run held something back since, and when progress was told last.
  private struct Meter {
    var since = Clocks.boottime()
    var hasHeldBack = false
    var toldAt: Int64 = 0
  }

  /// - Parameter file: that of `checkpoint`, if it was found again.
  init(
    _ spec: TaskSpec, source: CurlURL, credential: [HeaderField], destination: StorageURL,
    checkpoint: DownloadCheckpoint?,
    file: StagingFile?, ledger: any DownloadLedger, context: DownloadContext
  ) {
    self.spec = spec
    self.credential = credential
    self.source = source
    self.destination = destination
    self.ledger = ledger
    self.context = context
    found = file.flatMap { file in checkpoint.map { (file, $0) } }
    throttle = Throttle(rate: spec.rate, limiter: context.root.limiter, loop: context.root.loop)
    staging = StagingWriter(spec, destination: destination, ledger: ledger, context: context)
    machine = DownloadMachine(
      source: source.text, expect: spec.expect, hasCredential: spec.credential != nil,
      // What was not found again is of an older generation than what is fetched now.
      generation: found?.checkpoint.generation ?? checkpoint.map { $0.generation + 1 } ?? 0,
      limits: context.options.limits,
      governor: Self.governor(of: spec, for: source, isLimited: throttle.isLimited, context: context))
    staging.owner = self
  }

  var root: StorageRoot { context.root }
  var loop: EventLoop { root.loop }
  var options: DownloadOptions { context.options }
  var staged: StagedFile? { staging.staged }

  /// Fetches what is not there yet, and publishes it.
  func fetch() async -> DownloadOutcome {
    await withUnsafeContinuation { continuation in
      completion = continuation
      use(source.server)
      let actions = machine.begin(resuming: found?.checkpoint)
      if let (file, checkpoint) = found {
        staging.adopt(
          file, size: checkpoint.identity.size, done: checkpoint.done, isWanted: machine.identity != nil)
      }
      perform(actions)
      // The task may have been canceled before there was anything to stop.
      if isStopping { stop() }
    }
  }

  /// Ends the run soon, with what is on disk recorded.
  func stop() {
    isStopping = true
    publication?.stop()
    // Before the start, and while the file is being published, the flag alone is looked at.
    if completion != nil, !isPublishing { perform(machine.stop()) }
  }

  private func finish(_ outcome: DownloadOutcome) {
    // A timer that is left keeps the loop from its end.
    for timer in [timer, retry] { timer?.cancel() }
    (timer, retry) = (nil, nil)
    staging.close()
    throttle.close()
    leaveHost()
    completion?.resume(returning: outcome)
    completion = nil
  }
}

// Actions.
extension Download {
  private func perform(_ actions: [DownloadMachine.Action]) {
    for action in actions {
      switch action {
      case .request(let request): start(request)
      case .cancel(let id): fetches[id]?.task.cancel()
      case .shorten(let id, let count): fetches[id]?.receiver.shorten(to: count)
      case .openStaging(let generation, let size): staging.open(generation: generation, size: size)
      case .pause(let milliseconds):
        // Between the half and the whole of it, so that many tasks do not come back together.
        let jittered = Int64.random(in: milliseconds / 2...milliseconds)
        retry = loop.timer(after: .milliseconds(jittered)) { [self] in perform(machine.retryDue()) }
      case .refreshCredential:
        loop.task { [self] in await refreshCredential() }
      case .complete(let bytes):
        isPublishing = true
        loop.task { [self] in await complete(bytes: bytes) }
      case .end(let end):
        loop.task { [self] in await wind(up: end) }
      }
    }
  }

  private func start(_ request: DownloadMachine.Request) {
    let receiver = ChunkReceiver(request.id, of: self)
    let fetch = Fetch(
      Exchange(request, source: source, destination: destination, options: options), receiver: receiver)
    let task = loop.task { [self] in
      let end = await fetch.run(on: root.client, sharing: root.hosts, pulse: ledger.pulse) { place in
        CurlRequest(request, to: place, spec: spec, credential: credential, context: context)
      }
      fetches[request.id] = nil
      share()
      perform(
        machine.ended(
          request.id, at: end.place, received: receiver.received, end.interruption, milliseconds: end.milliseconds))
    }
    fetches[request.id] = (receiver, task)
  }

  private func refreshCredential() async {
    let former = credential
    guard let name = spec.credential else { return }
    let (file, source) = (root.credentials, source)
    let read = try? await root.files.run { try file.fields(of: name, for: source) }
    credential = read ?? former
    perform(machine.credentialRefreshed(isNew: credential != former))
  }

  private func complete(bytes: Int64) async {
    let result = await publish(bytes: bytes)
    isPublishing = false
    switch result {
    case .ended(let outcome): finish(outcome)
    case .digestMismatch(let mismatch): perform(machine.digestMismatched(mismatch))
    case .interrupted: perform(machine.stop())
    case .failed(let failure): perform(machine.fail(failure))
    }
    if isStopping { stop() }
  }

  private func publish(bytes: Int64) async -> Publication.Result {
    await staging.syncing.opened()
    await staged?.opening.opened()
    // The last sync may have failed, which ended the run.
    guard machine.isComplete, let staged, let file = staged.file, var identity = machine.identity,
      ledger.mayWrite
    else { return .interrupted }
    let publication = Publication(
      of: file, to: destination, ifExists: spec.ifExists, expect: spec.expect, root: root, ledger: ledger)
    self.publication = publication
    if isStopping { publication.stop() }
    identity.size = bytes
    var done = ByteRanges()
    done.insert(0..<bytes)
    var checkpoint = DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done)
    return await publication.run(bytes: bytes, isReserved: staged.size == nil, follower: staging.follower) { sha256 in
      checkpoint.publishing = .init(sha256: sha256 ?? [])
      try await ledger.checkpoint(checkpoint)
    }
  }

  /// The last request is over: what is written is recorded, so that the next run goes on from there.
  private func wind(up end: DownloadMachine.End) async {
    if publication?.isVerified != true { await staging.recordRest(generation: machine.generation) }
    switch end {
    case .stopped: finish(.stopped)
    case .failed(let failure): finish(ledger.mayWrite ? .failed(failure) : .stopped)
    }
  }
}

// What receivers ask and tell.
extension Download {
  func received(_ answer: SourceAnswer, from place: Place, of id: Int) -> Reception {
    let (reception, actions) = machine.answered(answer, from: place, of: id)
    perform(actions)
    if let server = machine.resolved?.server { use(server) }
    return reception
  }

  /// False, and the run ends, once the task may have another owner.
  func mayWrite() -> Bool {
    if ledger.mayWrite { return true }
    perform(machine.stop())
    return false
  }

  func wrote(_ count: Int, to file: StagedFile, by receiver: ChunkReceiver) {
    guard file === staged else { return }
    machine.wrote(receiver.id, received: receiver.received)
    staging.follower?.follow(file.written.prefixEnd)
    tick()
  }

  /// Syncs and reports where that is due.
  private func tick() {
    let now = Clocks.boottime()
    if !isPublishing { staging.syncIfDue(now: now) }
    guard let staged, now - meter.toldAt >= 250_000_000 else { return }
    meter.toldAt = now
    ledger.progress(bytesDone: staged.written.count, bytesTotal: machine.identity?.size)
  }

  /// A limit or the disk made a transfer wait.
  func heldBack() {
    meter.hasHeldBack = true
  }

  /// A large download is looked after also while no bytes come.
  private func startTimer() {
    guard timer == nil else { return }
    meter.since = Clocks.boottime()
    timer = loop.timer(after: .milliseconds(machine.sampleInterval)) { [self] in
      timer = nil
      tick()
      let now = Clocks.boottime()
      for (receiver, _) in fetches.values { receiver.flush(before: now - options.exposure.nanoseconds) }
      share()
      let sample = DownloadMachine.Sample(
        milliseconds: (now - meter.since) / 1_000_000, arrived: fetches.mapValues { $0.receiver.arrived },
        isHeldBack: meter.hasHeldBack)
      (meter.since, meter.hasHeldBack) = (now, false)
      perform(machine.sampled(sample))
      if completion != nil { startTimer() }
    }
  }
}

// The connections to the source's host, which others use as well.
extension Download {
  /// Begins with as many connections as were right for this host a short time ago.
  private static func governor(
    of spec: TaskSpec, for source: CurlURL, isLimited: Bool, context: DownloadContext
  ) -> ConnectionGovernor {
    let limits = context.options.limits
    let most = min(spec.connections, limits.connections)
    let known = context.root.hosts.experience(of: source.server)
    var governor = ConnectionGovernor(
      maximum: most, start: isLimited ? 1 : known?.connections ?? limits.firstConnections, isKnown: known != nil)
    governor.wanted = spec.rate
    return governor
  }

  /// Requests go to `server` from now on.
  private func use(_ server: String) {
    guard server != host else { return }
    leaveHost()
    host = server
    root.hosts.enter(server)
    share()
  }

  private func share() {
    if let host { machine.server.allowed = root.hosts.share(of: host) }
  }

  private func leaveHost() {
    guard let host else { return }
    self.host = nil
    root.hosts.leave(host)
    if let experience = machine.experience, !throttle.isLimited { root.hosts.learned(experience, of: host) }
  }
}

extension Download: StagingOwner {
  func recordable(generation: Int) -> SourceIdentity? {
    machine.isResumable && machine.generation == generation ? machine.identity : nil
  }

  func opened(_ file: StagedFile) {
    if throttle.isLimited || (file.size ?? .max) > options.limits.firstChunk { startTimer() }
  }

  func stagingFailed(_ failure: TaskFailure) {
    perform(machine.fail(failure))
  }
}
