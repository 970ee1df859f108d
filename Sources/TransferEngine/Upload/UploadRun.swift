import ReelhaulMessages
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// One run of an upload, from the look at its source to its outcome. It begins where earlier runs stopped.
// @unchecked: used only on its loop.
final class UploadRun: @unchecked Sendable {
  private let spec: TaskSpec
  private let target: any UploadTarget
  private let open: @Sendable () async throws -> any OpenedSource
  private let hasNewCredential: @Sendable () async -> Bool
  private let ledger: any UploadLedger
  private let lane: HTTPLane
  private let throttle: Throttle
  /// That of the destination.
  private let scheme: TransferMetrics.Scheme
  private var state: UploadCheckpoint?
  /// Whether the target has said that the whole file may be there.
  private var publishes = false
  private var recordedAt = BootInstant.now

  /// How many versions of the source, or lost uploads, one run begins anew for.
  private static let beginnings = 4
  private static let recordInterval = Duration.seconds(2)

  /// - Parameters:
  ///   - open: opens the source as it is now.
  ///   - hasNewCredential: whether the credentials of the task have changed since the run began.
  init(
    _ spec: TaskSpec, to target: any UploadTarget, from checkpoint: UploadCheckpoint?, ledger: any UploadLedger,
    lane: HTTPLane, open: @escaping @Sendable () async throws -> any OpenedSource,
    hasNewCredential: @escaping @Sendable () async -> Bool = { false }
  ) {
    self.spec = spec
    self.target = target
    self.open = open
    self.hasNewCredential = hasNewCredential
    self.ledger = ledger
    self.lane = lane
    state = checkpoint
    scheme = TransferMetrics.Scheme(spec.destination ?? "")
    throttle = Throttle(rate: spec.rate, limiter: lane.limiter, loop: lane.loop)
  }

  func run() async -> UploadOutcome {
    lane.metrics.begun(scheme)
    defer {
      lane.metrics.ended(scheme)
      throttle.close()
    }
    let pulse = lane.loop.repeating(every: .seconds(10), ledger.pulse)
    defer { pulse.cancel() }
    do {
      var begun = 0
      while true {
        let reason: TaskFailure
        do {
          return try await attempt()
        } catch is UploadSourceChanged {
          // It may have the same validator, and is checked anew.
          state?.checked = nil
          reason = TaskFailure(
            code: .sourceChanging, message: "the source keeps changing while it is uploaded", class: .retry)
        } catch is UploadGone {
          reason = TaskFailure.badResponse("it keeps losing the upload", url: target.location)
          keep(ByteRanges())
          // Something of it may be there still, and nothing would remember it.
          if let session = state?.session { try await abandon(session) }
          state?.session = nil
          // Its beginning has left nothing that is not known.
          state?.intendedAt = 0
        } catch is UploadIncomplete {
          reason = TaskFailure.badResponse("it keeps losing parts that it has confirmed", url: target.location)
        }
        begun += 1
        if begun == Self.beginnings { return .failed(reason) }
      }
    } catch var failure as TaskFailure {
      // The next attempt goes on with it.
      if failure.isOfCredential, await hasNewCredential() { failure.class = .retry }
      // The end of a run that was stopped may look like a failure of the request that it canceled.
      if failure.class == .fail, !Task.isCancelled { await giveUp(after: failure) }
      return Task.isCancelled || !ledger.mayWrite ? .stopped : .failed(failure)
    } catch {
      guard !Task.isCancelled, ledger.mayWrite, !(error is CancellationError) else { return .stopped }
      return .failed(.unrecorded(error))
    }
  }

  /// The server has this of the file.
  private func keep(_ there: ByteRanges) {
    if let done = state?.done, !done.subtracting(there).isEmpty { state?.setbacks += 1 }
    state?.done = there
  }

  /// Gives an upload up before another one takes its place. One that the server does not let go stays.
  private func abandon(_ session: [UInt8]) async throws {
    do {
      guard try await target.abort(session: session), state?.isPublishing == true else { return }
    } catch let failure as TaskFailure where failure.class == .fail {
      return
    }
    try await forgetSession()
  }

  /// This run has ended the upload. If all of it was sent, the next one would take it for one that the server has finished.
  private func forgetSession() async throws {
    try await record {
      $0.session = nil
      $0.intendedAt = 0
      $0.done = ByteRanges()
    }
  }

  /// Nothing will continue this upload. If it stays in spite of that, the checkpoint still names it.
  private func giveUp(after failure: TaskFailure) async {
    guard let session = state?.session else { return }
    let isGone = try? await Self.giveUp(session, at: target, on: lane.loop) { [ledger] in ledger.mayWrite }
    // What may be finished stays known: some stores end it all the same, whether it is there or not.
    if isGone == true, failure.code != .answerLost { try? await forgetSession() }
  }

  /// A server that cannot end an upload now is asked again for some seconds, and one that refuses is not. Returns whether
  /// it was ended.
  @discardableResult
  private static func giveUp(
    _ session: [UInt8], at target: any UploadTarget, on loop: EventLoop, while mayGoOn: @Sendable () -> Bool
  ) async throws -> Bool {
    for number in 0..<beginnings {
      if number > 0 { try await loop.sleep(for: .seconds(1 << (number - 1))) }
      guard mayGoOn() else { return false }
      do {
        return try await target.abort(session: session)
      } catch let failure as TaskFailure where failure.class == .fail {
        return false
      } catch {}
    }
    return false
  }

  private func attempt() async throws -> UploadOutcome {
    let source = try await open()
    // Another owner may have finished what this run would end or look at.
    guard ledger.mayWrite else { throw CancellationError() }
    var order = try await prepare(source)
    var receipts: [Int: UploadReceipt] = [:]
    var partial: [Int: Int64] = [:]
    var isTold = true
    if let session = state?.session {
      switch try await target.resume(order, session: session) {
      case .gone: throw UploadGone()
      case .finished(let object): return try succeeded(object, order)
      case .open(let there, let parts): (receipts, partial) = (there, parts)
      case .untold: isTold = false
      }
    } else if let outcome = try await begin(&order) {
      return outcome
    } else {
      isTold = !publishes
    }
    guard let session = state?.session else { throw UploadGone() }
    // It cannot be there as long as something of it is missing.
    let isMissing = isTold && !order.plan.publishesAtOnce && receipts.count < order.plan.segments(of: order.size)
    if isMissing { order.mayBeThere = false }
    // No byte of a copy that the store makes by itself passes the limits.
    let isLimited = !target.copiesByStore(order)
    let server = await target.server
    let place = lane.hosts.enter(server)
    defer { lane.hosts.leave(server, place) }
    let queue = UploadQueue(
      order, session: session, target: target, ledger: ledger, loop: lane.loop,
      receipts: receipts, partial: partial,
      rate: { [spec, throttle] in
        isLimited ? [spec.rate, throttle.commonShare].compactMap(\.self).min() : nil
      },
      share: { [lane] in lane.hosts.share(of: server, for: place) },
      counted: { [lane, scheme] in lane.metrics.parts.add(1, scheme.rawValue, $0.rawValue) })
    if state?.done != queue.confirmed || isMissing && state?.isPublishing == true {
      keep(queue.confirmed)
      try await record { if isMissing { $0.isPublishing = false } }
    }
    receipts = try await queue.run { [self] in
      guard recordedAt + Self.recordInterval <= .now, state?.done != queue.confirmed else { return }
      try await record { $0.done = queue.confirmed }
    }
    return try await finish(order, source, session, receipts)
  }

  /// The server has all segments: makes the file of them, if the source is still the same.
  private func finish(
    _ order: UploadOrder, _ source: any OpenedSource, _ session: [UInt8], _ receipts: [Int: UploadReceipt]
  ) async throws -> UploadOutcome {
    if !order.plan.publishesAtOnce {
      try await source.check()
      try await record {
        $0.done = ByteRanges(0..<order.size)
        $0.isPublishing = true
      }
    }
    let sorted = receipts.values.sorted { $0.segment < $1.segment }
    do {
      return try succeeded(try await target.finish(order, session: session, receipts: sorted), order)
    } catch let failure as TaskFailure where failure.code == .digestMismatch {
      // The next attempt finds the object, and may not be told the same again.
      try await record { $0.isDoubted = true }
      throw failure
    } catch let failure as TaskFailure where failure.code == .destinationExists && !order.plan.publishesAtOnce {
      // The next run looks for what is in the way, and not for this upload.
      try await record { $0.isPublishing = false }
      throw failure
    }
  }

  /// Makes the state fit the source, and checks what the task expects of it.
  private func prepare(_ source: any OpenedSource) async throws -> UploadOrder {
    let earlier = state
    let isOther = earlier?.identity != source.identity
    if isOther {
      if let session = earlier?.session {
        try await abandon(session)
      } else if let earlier, earlier.intendedAt > 0 {
        try await target.forget(earlier.plan, since: earlier.intendedAt)
      }
      state = UploadCheckpoint(
        identity: source.identity, plan: try await target.plan(size: source.identity.size),
        generation: earlier.map { $0.generation + 1 } ?? 0)
      state?.setbacks = earlier?.setbacks ?? 0
      // After a cancel, nobody knows what was recorded.
      state?.mayBeTwice =
        earlier.map { $0.isPublishing || $0.mayBeTwice } ?? (ledger.beginsAnew && target.mayBringFile)
    }
    try checkRepeat(after: earlier)
    // It may have changed under its validator, or a worker of an earlier version has checked it.
    if isOther || isChecked(source) && earlier?.checked == nil { try await check(source) }
    guard let state else { throw UploadGone() }
    let checked: any UploadSource = state.checked.map { CheckedSource(source: source, sums: $0) } ?? source
    var plan = state.plan
    plan.parallel = min(plan.parallel, spec.connections)
    return UploadOrder(
      task: spec.id, generation: state.generation, size: state.identity.size, plan: plan,
      ifExists: spec.ifExists, sha256: spec.expect.sha256, mayBeThere: earlier?.isPublishing ?? false,
      mayBeTwice: state.mayBeTwice, beginsAnew: ledger.beginsAnew,
      body: UploadBodies(
        source: checked, throttle: throttle, loop: lane.loop,
        moved: { [metrics = lane.metrics, scheme] in metrics.moved($0, .upload, scheme) }
      ) { [ledger] in ledger.mayWrite },
      record: { [self] session in try await record { $0.session = session } },
      publishing: { [self] isPublishing in
        publishes = isPublishing
        if isPublishing || self.state?.isPublishing == true { try await record { $0.isPublishing = isPublishing } }
      },
      isDoubted: state.isDoubted)
  }

  /// Throws if the server may have the whole file already, and would do once more what it does with it, or take another
  /// version for the one that it has.
  private func checkRepeat(after earlier: UploadCheckpoint?) throws {
    guard let state, state.plan.isSentOnce else { return }
    // Of which version it was is forgotten.
    if ledger.beginsAnew { throw TaskFailure.answerLost(at: target.location, "the task was canceled") }
    guard let earlier, earlier.isPublishing else { return }
    let isOther = earlier.identity != state.identity
    guard isOther || !target.knowsRepeats else { return }
    throw TaskFailure.answerLost(at: target.location, isOther ? "the source has changed" : nil)
  }

  /// Whether it is read once before any of it is sent, and all later reads are compared with that. Bytes that are held do
  /// not change.
  private func isChecked(_ source: any OpenedSource) -> Bool {
    !source.isHeld && (spec.expect.hasDigest || !source.isStrong)
  }

  /// Throws if the source is not the expected one. All later reads must give what this one has.
  private func check(_ source: any OpenedSource) async throws {
    let stop = Flag()
    let sums = Lock(BlockSummer(BlockSums(block: state?.plan.block(of: source.identity.size) ?? source.block)))
    let difference = try await withTaskCancellationHandler {
      try await source.mismatch(spec.expect, seeing: { bytes in sums.withLock { $0.append(bytes) } }) { [ledger] _ in
        ledger.mayWrite && !stop.isSet
      }
    } onCancel: {
      stop.set()
    }
    if let difference {
      let isOfSize = spec.expect.bytes.map { $0 != source.identity.size } ?? false
      throw TaskFailure(
        code: isOfSize ? .sizeMismatch : .digestMismatch,
        message: "\(URLRedaction.redact(spec.source)) is not uploaded: \(difference)", class: .fail)
    }
    state?.checked = isChecked(source) ? sums.withLock { $0.finish() } : nil
  }

  /// The destination stays as it is. If the task says which file it expects, that is the source, and the length tells
  /// others from it only where no digest does.
  private func skipped(_ there: UploadedObject, _ order: UploadOrder) async throws -> UploadOutcome {
    var there = there
    if spec.expect != Expectation() {
      let isOfSize = there.size ?? order.size == order.size
      var isExpected = isOfSize
      if isOfSize, spec.expect.hasDigest || there.size == nil {
        isExpected = try await target.proves(&there, order)
      }
      guard isExpected else {
        let reason =
          isOfSize
          ? "its bytes are others or cannot be read" : "it has \(there.size ?? 0) bytes, not \(order.size)"
        throw TaskFailure(
          code: .destinationExists, message: "\(target.location) exists and is not the expected file: \(reason)",
          class: .fail)
      }
      if there.verified == .none, there.size != nil { there.verified = .size }
    }
    return .succeeded(there, bytes: there.size ?? 0)
  }

  /// Looks at the destination before an upload is begun: the outcome, if what is there decides it.
  private func found(_ order: inout UploadOrder) async throws -> UploadOutcome? {
    var looks = order.ifExists != .replace || order.mayBeThere
    // What this task itself has uploaded of an earlier version must be looked for.
    if order.ifExists == .fail, order.generation == 0, !order.mayBeThere {
      looks = try await !target.refusesToReplace(order)
    }
    guard looks, var there = try await target.look(order) else { return nil }
    if order.mayHaveMade(there) {
      // It was made before the task was canceled, and with that it was forgotten whether it is doubted.
      if state?.isPublishing == false {
        order.isDoubted = true
        state?.isDoubted = true
      }
      if try await target.proves(&there, order) { return try succeeded(there, order) }
    }
    let isFormer = there.owner?.task == spec.id
    if isFormer, order.ifExists != .replace { order.replaces = there.etag ?? "*" }
    switch order.ifExists {
    case _ where isFormer: break
    case .skip: return try await skipped(there, order)
    case .fail where !order.mayBeThere:
      throw TaskFailure(
        code: .destinationExists, message: "\(target.location) exists already: use --if-exists", class: .fail)
    default: break
    }
    return nil
  }

  /// Opens an upload, unless the destination decides the outcome.
  private func begin(_ order: inout UploadOrder) async throws -> UploadOutcome? {
    if let state, state.intendedAt > 0 { try await target.forget(order.plan, since: state.intendedAt) }
    if let outcome = try await found(&order) { return outcome }
    let opens = !order.plan.publishesAtOnce
    let former = state
    publishes = false
    if opens {
      try await record {
        $0.intendedAt = Int64(Clocks.realtimeMilliseconds())
        if order.mayBeThere { $0.mayBeTwice = true }
      }
    }
    let session: [UInt8]
    do {
      session = opens ? try await opened(order) : try await target.begin(order)
    } catch  where opens && Self.tellsThatNothingWasMade(error, wasSent: publishes) {
      // So that the next run looks for nothing that nobody has made.
      if state?.session == nil, let former { try await record { $0 = former } }
      throw error
    }
    guard ledger.mayWrite else {
      // The task has another owner, which knows nothing of it.
      if opens { giveUpLater(session) }
      throw CancellationError()
    }
    guard !order.plan.isSentOnce else {
      // After a cancel, a record means that the whole file may be there.
      state?.session = session
      return nil
    }
    do {
      try await record {
        $0.session = session
        // Of an upload that was just opened nothing is there, unless the file was sent with it.
        $0.isPublishing = !opens || publishes
      }
    } catch {
      // The next run may not know of it. If it does, it finds out that nothing is left.
      if opens, ledger.mayWrite { giveUpLater(session) }
      throw error
    }
    return nil
  }

  /// Whether the request that opens an upload was refused, or never reached the server. Refusals of who asks come before
  /// anything is made, others of one that has brought the file maybe after that.
  private static func tellsThatNothingWasMade(_ error: any Error, wasSent: Bool) -> Bool {
    guard let failure = error as? TaskFailure else { return error is UploadSourceChanged && !wasSent }
    guard let status = failure.code.httpStatus else { return failure.code == .connectFailed }
    return 400..<500 ~= status && status != 408 && (!wasSent || [401, 403, 423, 429].contains(status))
  }

  /// Begins an upload. If the run is stopped meanwhile, the request goes on without it, and what it has opened is given
  /// up: nobody would know of it.
  private func opened(_ order: UploadOrder) async throws -> [UInt8] {
    let answer = Awaited<[UInt8]>()
    lane.loop.task { [self, target] in
      let result: Result<[UInt8], any Error>
      do { result = .success(try await target.begin(order)) } catch { result = .failure(error) }
      if !answer.settle(result), case .success(let session) = result { giveUpLater(session) }
    }
    return try await answer.value
  }

  /// Gives up an upload that no run continues, beside the run, which may have been stopped.
  private func giveUpLater(_ session: [UInt8]) {
    lane.loop.task { [target, loop = lane.loop] in
      try await Self.giveUp(session, at: target, on: loop) { true }
    }
  }

  private func record(_ change: (inout UploadCheckpoint) -> Void) async throws {
    guard var next = state else { return }
    change(&next)
    state = next
    guard ledger.mayWrite else { throw CancellationError() }
    try await ledger.checkpoint(next)
    recordedAt = .now
  }

  private func succeeded(_ object: UploadedObject, _ order: UploadOrder) throws -> UploadOutcome {
    if let size = object.size, size != order.size {
      throw TaskFailure(
        code: .sizeMismatch, message: "\(target.location) has \(size) bytes, but \(order.size) were uploaded",
        class: .retry)
    }
    var object = object
    if object.verified == .none, object.size != nil { object.verified = .size }
    return .succeeded(object, bytes: order.size)
  }
}
