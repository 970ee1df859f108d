import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One run of a download: the shell that carries out what ``DownloadMachine`` decides.
///
/// It runs on one engine loop. It passes everything that happens (a head, the end of a request, a failed sync) to the
/// machine as an event. An action never blocks: it starts something, and the end of that is again an event.
// @unchecked: used only on its loop; ``DownloadRun`` calls `fetch` and `stop` there.
final class Download: @unchecked Sendable {
  let context: DownloadContext
  let spec: TaskSpec
  let source: CurlURL
  let destination: StorageURL
  let ledger: any DownloadLedger
  let scheme: TransferMetrics.Scheme
  /// The header fields of the credential that the task names.
  private var credential: [HeaderField]
  /// Signs the requests to a source at `s3://`.
  private var s3: S3Object?
  var machine: DownloadMachine
  let throttle: Throttle
  let staging: StagingWriter
  /// The staging file and the checkpoint of an earlier run.
  private let found: (file: StagingFile, checkpoint: DownloadCheckpoint)?
  private var fetches: [Int: (receiver: ChunkReceiver, task: Task<Void, any Error>)] = [:]
  /// The SHA-256 of the last body that was only compared.
  private var fetched: [UInt8]?
  /// Set once all bytes are there.
  private var publication: Publication?
  private(set) var isPublishing = false
  /// The run is to stop. While it publishes the file, it first reaches its end or a step that the next run can
  /// continue.
  private var isStopping = false
  /// Fires when the machine is to try again.
  private var retry: LoopTimer?
  private var timer: LoopTimer?
  private var meter = Meter()
  /// The server that the run has entered in ``HostConnections`` while it fetches, and its number there.
  private var host: (name: String, number: Int)?
  private var completion: UnsafeContinuation<DownloadOutcome, Never>?
  /// Requests begin in callbacks too, which know nothing of the run's task.
  private let line = HostLine.current

  /// When the last sample was taken, whether the run held something back since, and when progress was told last.
  private struct Meter {
    var since = Clocks.boottime()
    var hasHeldBack = false
    var toldAt: Int64 = 0
  }

  /// - Parameter file: the staging file of `checkpoint`, if it was found again.
  init(
    _ spec: TaskSpec, source: CurlURL, credential: [HeaderField], s3: S3Object? = nil, destination: StorageURL,
    checkpoint: DownloadCheckpoint?,
    file: StagingFile?, ledger: any DownloadLedger, context: DownloadContext
  ) {
    self.spec = spec
    self.credential = credential
    self.s3 = s3
    self.source = source
    self.destination = destination
    self.ledger = ledger
    self.context = context
    scheme = s3 == nil ? TransferMetrics.Scheme(source.text) : .s3
    found = file.flatMap { file in checkpoint.map { (file, $0) } }
    throttle = Throttle(rate: spec.rate, limiter: context.root.limiter, loop: context.root.loop)
    staging = StagingWriter(spec, destination: destination, ledger: ledger, context: context)
    machine = DownloadMachine(
      source: source.text, expect: spec.expect, hasCredential: spec.credential != nil || s3 != nil,
      allowsUnframed: spec.allowUnframed,
      // Without its staging file a checkpoint is void, and the download begins the next generation.
      generation: found?.checkpoint.generation ?? checkpoint.map { $0.generation + 1 } ?? 0,
      limits: context.options.limits,
      governor: Self.governor(of: spec, for: source, isLimited: throttle.isLimited, context: context))
    staging.owner = self
    if found == nil, let checkpoint, checkpoint.publishing == nil {
      metrics.wasted(checkpoint.done.count, .lostFile)
    }
  }

  var root: StorageRoot { context.root }
  var metrics: TransferMetrics { root.metrics }
  var loop: EventLoop { root.loop }
  var options: DownloadOptions { context.options }
  var staged: StagedFile? { staging.staged }

  /// Fetches the missing bytes and publishes the file.
  func fetch() async -> DownloadOutcome {
    metrics.begun(scheme)
    defer { metrics.ended(scheme) }
    return await withUnsafeContinuation { continuation in
      completion = continuation
      use(source.server)
      let actions = machine.begin(resuming: found?.checkpoint)
      if let (file, checkpoint) = found {
        staging.adopt(
          file, size: checkpoint.identity.size, done: checkpoint.done, isWanted: machine.identity != nil)
      }
      perform(actions)
      // `stop` may have been called before `fetch`.
      if isStopping { stop() }
    }
  }

  /// Ends the run soon, after recording the bytes that are on disk.
  func stop() {
    isStopping = true
    publication?.stop()
    // Before the start and during publication, setting the flag is enough: `fetch` and `complete` read it.
    if completion != nil, !isPublishing { perform(machine.stop()) }
  }

  private func finish(_ outcome: DownloadOutcome) {
    // A timer that is not canceled would keep the loop from ending.
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
        let jittered = Int64.random(in: milliseconds / 2...milliseconds)
        retry = loop.timer(after: .milliseconds(jittered)) { [self] in perform(machine.retryDue()) }
      case .refreshCredential:
        loop.task { [self] in await refreshCredential() }
      case .inspect(let bytes):
        loop.task { [self] in await inspect(bytes: bytes) }
      case .complete(let bytes):
        isPublishing = true
        leaveHost()
        loop.task { [self] in await complete(bytes: bytes) }
      case .end(let end):
        loop.task { [self] in await wind(up: end) }
      }
    }
  }

  private func start(_ request: DownloadMachine.Request) {
    if host == nil { use(request.place.server) }
    let receiver = ChunkReceiver(request.id, of: self)
    let fetch = Fetch(
      Exchange(
        request, source: source, object: s3?.place, destination: destination, options: options,
        mayLoseTLS: spec.expect.sha256 != nil),
      receiver: receiver, heard: { [s3] head, place in if place.isAtOrigin { s3?.client.learnTime(from: head) } })
    let task = HostLine.$current.withValue(line) { loop.task { [self] in await run(request, fetch, receiver) } }
    fetches[request.id] = (receiver, task)
  }

  private func run(_ request: DownloadMachine.Request, _ fetch: Fetch, _ receiver: ChunkReceiver) async {
    if let current = await s3?.current() { s3 = current }
    let end = await fetch.run(on: root.lane(pulse: ledger.pulse)) { place in
      var sent = CurlRequest(request, to: place, spec: spec, credential: credential, context: context)
      sent.receiveBuffer = bufferSize
      s3?.sign(&sent)
      return sent
    }
    fetches[request.id] = nil
    if let digest = receiver.comparedDigest() { fetched = digest }
    updateAllowed()
    perform(
      machine.ended(
        request.id, at: end.place, received: receiver.received, end.interruption,
        milliseconds: end.milliseconds, delay: end.delay, isSurplus: end.isSurplus))
  }

  private func refreshCredential() async {
    if let s3 {
      // The store may have refused the time and not the keys.
      var isNew = s3.client.clockDifference != s3.clockDifference
      if !isNew, let read = try? await s3.client.refresh(refused: s3.credential) { isNew = read != s3.credential }
      self.s3 = await s3.current()
      return perform(machine.credentialRefreshed(isNew: isNew))
    }
    let former = credential
    guard let name = spec.credential else { return }
    do {
      credential = try await root.credentials.fields(of: name, for: source, on: root.files, refused: former)
    } catch  where error.class == .wait {
      // Nobody knows yet whether there is another.
      return perform(machine.fail(error))
    } catch {}
    perform(machine.credentialRefreshed(isNew: credential != former))
  }

  private func inspect(bytes: Int64) async {
    // What was received may still be waiting for its file.
    await staged?.opening.opened()
    guard let file = staged?.file else { return }
    let result = await staging.attempt { () throws(StorageError) in
      var boxes = MediaBoxes(size: bytes) { range throws(StorageError) in try file.read(range) }
      return try boxes.addUp()
    }
    switch result {
    case .success(let addsUp): perform(machine.inspected(addsUp: addsUp))
    case .failure(let error): stagingFailed(staging.failure(for: error))
    }
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
    // The sync waited for above may have failed, which ends the run.
    guard machine.isComplete, let staged, let file = staged.file, var identity = machine.identity,
      ledger.mayWrite
    else { return .interrupted }
    // The first body may have been cut: it is published only if a second one is equal.
    if machine.isUnproven, fetched == nil { return .failed(.fetchesDiffer(bytes, "none")) }
    let proof = machine.version?.proof
    let publication = Publication(
      of: file, to: destination, ifExists: spec.ifExists, expect: spec.expect, verification: proof, root: root,
      ledger: ledger)
    self.publication = publication
    if isStopping { publication.stop() }
    identity.size = bytes
    var done = ByteRanges()
    done.insert(0..<bytes)
    var checkpoint = DownloadCheckpoint(
      generation: staged.generation, identity: identity, volume: file.volume.id,
      stagingName: file.name.description, done: done)
    // A file that an earlier run received has the space that this run had reserved.
    let isReserved = staged.size == nil || machine.isUnproven
    return await publication.run(
      bytes: bytes, isReserved: isReserved, fetched: machine.isUnproven ? fetched : nil, follower: staging.follower
    ) { sha256 in
      checkpoint.publishing = .init(sha256: sha256 ?? [], verification: proof)
      try await ledger.checkpoint(checkpoint)
    }
  }

  /// Called after the last request: records the written bytes, so that the next run continues from there.
  private func wind(up end: DownloadMachine.End) async {
    if case .failed(let failure) = end, failure.code == .digestMismatch {
      await staging.discard()
    } else if publication?.isVerified != true {
      await staging.recordRest(generation: machine.generation)
    }
    switch end {
    case .stopped: finish(.stopped)
    case .failed(let failure): finish(ledger.mayWrite ? .failed(failure) : .stopped)
    }
  }
}

// Calls from the receivers.
extension Download {
  func received(_ answer: SourceAnswer, from place: Place, of id: Int) -> Reception {
    switch answer {
    case .part, .whole: use(place.server)
    default: break
    }
    let (reception, actions) = machine.answered(answer, from: place, of: id)
    perform(actions)
    return reception
  }

  /// Returns false and ends the run once the task may have another owner.
  func mayWrite() -> Bool {
    if ledger.mayWrite { return true }
    perform(machine.stop())
    return false
  }

  /// Bytes have arrived, and are not written yet.
  func arrived() {
    staging.arrived(now: Clocks.boottime())
  }

  func wrote(_ count: Int, to file: StagedFile, by receiver: ChunkReceiver) {
    metrics.moved(count, .download, scheme)
    guard file === staged else { return }
    machine.wrote(receiver.id, received: receiver.received)
    staging.follower?.follow(file.written.prefixEnd)
    tick()
  }

  /// All that is wanted of a request is written.
  func hasEnough(_ id: Int) { fetches[id]?.task.cancel() }

  /// Syncs the file and reports progress when they are due.
  private func tick() {
    let now = Clocks.boottime()
    if !isPublishing { staging.syncIfDue(now: now) }
    guard let staged, now - meter.toldAt >= 250_000_000 else { return }
    meter.toldAt = now
    ledger.progress(bytesDone: staged.written.count, bytesTotal: machine.identity?.size)
  }

  /// The bytes that one connection gathers before it writes them, and that it reads at once: as much as flows.
  var bufferSize: Int {
    let known = machine.server.connectionRate ?? throttle.commonShare
    let rate = min(known ?? .max, spec.rate ?? .max)
    return rate == .max ? min(options.writeBuffer, options.firstBuffer) : bufferSize(at: rate)
  }

  /// `rate`: bytes per second of the connection.
  func bufferSize(at rate: Int64) -> Int {
    let share = options.writeBuffers / machine.server.governor.connections
    let flowing = Double(rate) * options.bufferTime.seconds
    return min(options.writeBuffer, max(32 << 10, Int(min(Double(share), flowing))))
  }

  /// A limit or the disk made a transfer wait.
  func heldBack() {
    meter.hasHeldBack = true
  }

  /// A large download is looked after also while no bytes come.
  private func startTimer() {
    guard timer == nil else { return }
    meter.since = Clocks.boottime()
    let interval = machine.sampleInterval
    timer = loop.timer(after: .milliseconds(interval), slack: interval >= 1000 ? .milliseconds(50) : .zero) { [self] in
      timer = nil
      tick()
      // A very low limit lets nothing pass for many minutes.
      if throttle.holds { ledger.pulse() }
      let now = Clocks.boottime()
      for (receiver, _) in fetches.values { receiver.flush(before: now - options.exposure.nanoseconds) }
      updateAllowed()
      let sample = DownloadMachine.Sample(
        milliseconds: (now - meter.since) / 1_000_000, arrived: fetches.mapValues { $0.receiver.arrived },
        isHeldBack: meter.hasHeldBack || fetches.values.contains { $0.receiver.isPaused })
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
      maximum: most, start: isLimited ? 1 : known?.connections ?? limits.firstConnections,
      rate: isLimited ? nil : known?.rate)
    governor.wanted = spec.rate
    return governor
  }

  /// Requests go to `server` from now on.
  private func use(_ server: String) {
    guard server != host?.name else { return }
    leaveHost()
    host = (server, root.hosts.enter(server))
    updateAllowed()
  }

  private func updateAllowed() {
    guard let host else { return }
    machine.server.governor.share = throttle.commonShare
    machine.server.isAwaited = root.hosts.waiting(for: host.name) > 0
    let share = root.hosts.share(of: host.name, for: host.number)
    if share != machine.server.governor.allowed { machine.server.governor.allowed = share }
  }

  private func leaveHost() {
    guard let (host, number) = host else { return }
    self.host = nil
    root.hosts.leave(host, number)
    // A task that may not have more has found out nothing that holds for others.
    guard let experience = machine.experience, !throttle.isLimited,
      spec.connections >= TaskSpec.standardConnections || experience.connections < spec.connections
    else { return }
    root.hosts.learned(experience, of: host)
    // The next download asks there first.
    if source.server != host { root.hosts.learned(experience, of: source.server) }
  }
}

// Calls from the staging writer.
extension Download {
  /// The identity under which the bytes of `generation` are recorded; `nil` if they cannot be resumed.
  func recordable(generation: Int) -> SourceIdentity? {
    machine.isResumable && machine.generation == generation ? machine.identity : nil
  }

  /// Whether nothing has proven yet that the bytes are all.
  var isUnproven: Bool { machine.isUnproven }

  /// No bytes arrive: writes those that are gathered. Returns false if this is no stall: what a limit or the disk holds
  /// back comes as soon as it may.
  func standsStill() -> Bool {
    guard !isPublishing, !fetches.values.contains(where: { $0.receiver.isPaused }) else { return false }
    for (receiver, _) in fetches.values { receiver.flush(before: .max) }
    return true
  }

  /// The present file is open.
  func opened(_ file: StagedFile) {
    if throttle.isLimited || (file.size ?? .max) > options.limits.firstChunk { startTimer() }
  }

  /// The file cannot be written, or its checkpoint cannot be recorded.
  func stagingFailed(_ failure: TaskFailure) {
    perform(machine.fail(failure))
  }
}
