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
  /// The present generation's file.
  var staged: StagedFile?
  var follower: DigestFollower?
  /// Closed while a sync runs and what it covers is recorded.
  let syncing = Latch()
  var lastSync: Int64
  /// What was written before `at` is recorded: so many bytes.
  var recorded: (bytes: Int64, at: Int64)
  /// Told to stop while the file was being published, which goes on to its end or to the next step that can wait.
  var isStopping = false
  /// What an earlier run left, and recorded of it.
  private let found: (file: StagingFile, checkpoint: DownloadCheckpoint)?
  private var requests: [Int: (receiver: ChunkReceiver, task: Task<Void, any Error>)] = [:]
  private var bucket: TokenBucket?
  /// What the engine's limit lets pass before it is asked again; those it keeps waiting.
  private var share: (number: Int, left: Int, isAsked: Bool)
  private var throttled: [CurlTransfer] = []
  /// Until the task's own limit lets bytes pass again.
  private var pacer: LoopTimer?
  /// Until the machine tries again.
  private var retry: LoopTimer?
  private var timer: LoopTimer?
  private var lastProgress: Int64 = 0
  private var sample: (since: Int64, bytes: Int64)
  private(set) var isPublishing = false
  /// The file is whole and verified, and may be recorded as being published: it is the next run's, whatever becomes of
  /// this one.
  var isVerified = false
  private var completion: UnsafeContinuation<DownloadOutcome, Never>?

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
    let now = Clocks.boottime()
    lastSync = now
    recorded = (0, now)
    sample = (now, 0)
    share = (context.limiter?.enter() ?? 0, 0, false)
    bucket = spec.rate.map { TokenBucket(rate: $0, now: now) }
    machine = DownloadMachine(
      source: source, destination: destination, expect: spec.expect, hasCredential: spec.credential != nil,
      // What was not found again is of an older generation than what is fetched now.
      generation: found?.checkpoint.generation ?? checkpoint.map { $0.generation + 1 } ?? 0,
      limits: context.options.limits)
  }

  var loop: EventLoop { context.loop }
  var options: DownloadOptions { context.options }

  /// Fetches what is not there yet, and publishes it.
  func fetch() async -> DownloadOutcome {
    await withUnsafeContinuation { continuation in
      completion = continuation
      let actions = machine.begin(resuming: found?.checkpoint)
      if let (file, checkpoint) = found {
        use(StagedFile(file, size: checkpoint.identity.size, done: checkpoint.done))
        // Else the first answer opens another file, and this one goes.
        if machine.identity != nil { opened(file) }
      }
      perform(actions)
      // The task may have been canceled before there was anything to stop.
      if isStopping { stop() }
    }
  }

  /// Ends the run soon, with what is on disk recorded.
  func stop() {
    isStopping = true
    // Before the start, and while the file is being published, the flag alone is looked at.
    if completion != nil, !isPublishing { perform(machine.stop()) }
  }

  /// Once ``fetch()`` has begun: whether its outcome is told.
  var isFinished: Bool { completion == nil }

  private func finish(_ outcome: DownloadOutcome) {
    // A timer that is left keeps the loop from its end.
    for timer in [timer, pacer, retry] { timer?.cancel() }
    (timer, pacer, retry) = (nil, nil, nil)
    follower?.close()
    context.limiter?.leave(share.number, returning: share.left)
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
      case .cancel(let id): requests[id]?.task.cancel()
      case .shorten(let id, let count): requests[id]?.receiver.shorten(to: count)
      case .openStaging(let generation, let size): openStaging(generation: generation, size: size)
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
    let receiver = ChunkReceiver(request, of: self)
    let task = loop.task { [self] in
      var failure: CurlError?
      do throws(CurlError) {
        _ = try await context.client.perform(
          CurlRequest(request, spec: spec, credential: credential, options: options), handler: receiver)
      } catch {
        failure = error
      }
      await receiver.finish()
      ended(receiver, failure)
    }
    requests[request.id] = (receiver, task)
  }

  private func refreshCredential() async {
    let former = credential
    guard let name = spec.credential else { return }
    let (file, source) = (context.credentials, source)
    let read = try? await context.files.run { try file.fields(of: name, for: source) }
    credential = read ?? former
    perform(machine.credentialRefreshed(isNew: credential != former))
  }

  private func ended(_ receiver: ChunkReceiver, _ error: CurlError?) {
    requests[receiver.request.id] = nil
    let elapsed = Clocks.boottime() - receiver.startedAt
    perform(
      machine.ended(
        receiver.request.id, received: receiver.received, error: error, milliseconds: elapsed / 1_000_000))
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

  /// The last request is over: what is written is recorded, so that the next run goes on from there.
  private func wind(up end: DownloadMachine.End) async {
    await recordRest()
    switch end {
    case .stopped: finish(.stopped)
    case .failed(let failure): finish(ledger.mayWrite ? .failed(failure) : .stopped)
    }
  }
}

// What receivers ask and tell.
extension Download {
  /// What becomes of a body, with the file it goes to.
  enum Reception {
    case write(StagedFile, offset: Int64, count: Int64?)
    case skip
    case refuse
  }

  func received(_ head: CurlHead, of id: Int) -> Reception {
    let now = Clocks.realtimeMicroseconds() / 1_000_000
    let (reception, actions) = machine.head(head, of: id, now: now)
    perform(actions)
    switch reception {
    case .skip: return .skip
    case .refuse: return .refuse
    case .write(let offset, let count):
      guard let staged else { return .refuse }
      return .write(staged, offset: offset, count: count)
    }
  }

  var isLimited: Bool { bucket != nil || context.limiter != nil }

  /// True where `count` bytes must wait for a limit: `transfer` is resumed in time. Else they are counted, and pass.
  func throttle(_ count: Int, of transfer: CurlTransfer) -> Bool {
    guard isLimited else { return false }
    let now = Clocks.boottime()
    if let wait = bucket?.wait(now: now), wait > 0 {
      throttled.append(transfer)
      if pacer == nil {
        pacer = loop.timer(after: .nanoseconds(wait)) { [self] in
          pacer = nil
          resumeThrottled()
        }
      }
      return true
    }
    guard mayShare(count) else {
      throttled.append(transfer)
      return true
    }
    bucket?.take(count, now: now)
    return false
  }

  /// Whether the engine's limit lets `count` bytes pass, at most a portion; if not, it is asked.
  private func mayShare(_ count: Int) -> Bool {
    guard let limiter = context.limiter else { return true }
    if share.left < count, !share.isAsked {
      let isGranted = limiter.take(share.number) { [self] in loop.execute { [self] in granted(limiter.portion) } }
      if isGranted { share.left += limiter.portion } else { share.isAsked = true }
    }
    guard share.left >= count else { return false }
    share.left -= count
    return true
  }

  private func granted(_ bytes: Int) {
    share.left += bytes
    share.isAsked = false
    resumeThrottled()
  }

  /// Each asks again.
  private func resumeThrottled() {
    let waiting = throttled
    throttled = []
    for transfer in waiting { transfer.resume() }
  }

  /// Whether so much waits to be recorded that nothing more may be received: `resume` is called when it is.
  func mustWaitForRecord(_ file: StagedFile, then resume: @escaping @Sendable () -> Void) -> Bool {
    guard syncing.isClosed, file.written.count - recorded.bytes >= options.syncBytes,
      Clocks.boottime() - recorded.at >= options.exposure.nanoseconds
    else { return false }
    syncing.whenOpen(resume)
    return true
  }

  /// False, and the run ends, once the task may have another owner.
  func mayWrite(to file: StagedFile) -> Bool {
    if ledger.mayWrite { return true }
    perform(machine.stop())
    return false
  }

  func storageFailed(_ error: StorageError) {
    var failure = error.failure
    if error.code == .diskFull, let staged, staged.size == nil, !staged.written.isEmpty {
      // Nothing of a source of unknown length is kept: it is not fetched again every few seconds.
      failure.retryAfter = RetryPolicy.longestBackoff
      // One that fills the disk by itself would do so again and again: that counts.
      if staged.file?.fillsVolume == true { failure.class = .retry }
    }
    fail(failure)
  }

  func wrote(_ count: Int, to file: StagedFile, by receiver: ChunkReceiver) {
    guard file === staged else { return }
    machine.wrote(receiver.request.id, received: receiver.received)
    sample.bytes += Int64(count)
    follower?.follow(file.written.prefixEnd)
    tick()
  }

  func fail(_ failure: TaskFailure) {
    perform(machine.fail(failure))
  }

  /// Syncs and reports where that is due.
  func tick() {
    let now = Clocks.boottime()
    syncIfDue(now: now)
    guard let staged, now - lastProgress >= 250_000_000 else { return }
    lastProgress = now
    ledger.progress(bytesDone: staged.written.count, bytesTotal: machine.identity?.size)
  }

  /// A large download is looked after also while no bytes come.
  func startTimer() {
    guard timer == nil else { return }
    timer = loop.timer(after: .seconds(1), every: .seconds(1)) { [self] in
      tick()
      let now = Clocks.boottime()
      for (receiver, _) in requests.values { receiver.flush(before: now - options.exposure.nanoseconds) }
      let throughput = sample.bytes * 1000 / max(1, (now - sample.since) / 1_000_000)
      sample = (now, 0)
      perform(machine.sampled(throughput: throughput))
    }
  }
}
