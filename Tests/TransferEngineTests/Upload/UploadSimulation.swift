import Glibc
import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// The world of one simulated upload: a store that makes mistakes, a source that changes, somebody else who writes to the
/// same place, and owners that follow one another. What happens follows from the seed.
final class UploadSimulation: Sendable {
  enum Way: CaseIterable {
    case put, s3Small, s3, tus
    /// The file is sent with the creation of its upload.
    case tusWhole

    var isTus: Bool { self == .tus || self == .tusWhole }
  }

  struct State {
    var random: SplitMix64
    /// Whether faults still happen.
    var isFaulty = true
    /// The owner of the task.
    var epoch = 0
    /// What the task's store has, as the next owner gets it.
    var checkpoint: UploadCheckpoint?
    /// All versions that the source has had.
    var versions: [[UInt8]] = []
    /// The bytes that somebody else has put at the destination, which must stay.
    var foreign: [UInt8]?
    /// Events until the present owner is stopped.
    var fuse: Int?
    /// How many answers to creations, and to the joining of parts, were lost.
    var lostCreations = 0
    var lostJoins = 0
    var steps: [String] = []
  }

  let way: Way
  let spec: TaskSpec
  let harness: UploadHarness
  let state: Lock<State>
  private static let size = 200_000

  init(_ way: Way, seed: UInt64, harness: UploadHarness) throws {
    self.way = way
    self.harness = harness
    var random = SplitMix64(seed: seed &* 31 &+ UInt64(Way.allCases.firstIndex(of: way) ?? 0))
    let place =
      switch way {
      case .put: harness.store.url("/put/film.mp4")
      case .s3, .s3Small: "s3://films/film.mp4"
      case .tus, .tusWhole: "tus+\(harness.store.url("/tus"))"
      }
    var spec = TaskSpec(id: .random(), kind: .upload, source: UploadHarness.source, destination: place)
    if way == .s3 || way == .s3Small { spec.credential = "s3" }
    if random.chance(0.4) { spec.ifExists = .replace }
    self.spec = spec
    state = Lock(State(random: random))
    try change()
    harness.store.script { [self] in faults(of: $0) }
  }

  var key: String { way == .put ? "put/film.mp4" : "films/film.mp4" }

  func note(_ step: String) { state.withLock { $0.steps.append(step) } }

  // MARK: The source

  /// Replaces the source by another version.
  func change() throws {
    let number = state.withLock { $0.versions.count }
    let bytes = OriginContent(seed: UInt64(number) &+ 100).bytes(0..<Int64(Self.size + number))
    state.withLock { $0.versions.append(bytes) }
    try write(bytes, to: "\(harness.sourcePath).new")
    guard rename("\(harness.sourcePath).new", harness.sourcePath) == 0 else { throw SystemError.last("rename") }
    note("the source has version \(number)")
  }

  // MARK: The store

  private func faults(of request: StoreRequest) -> [StoreFault] {
    let joins = request.operation == .tusCreate && request["upload-concat"]?.hasPrefix("final") == true
    if burn("\(request.operation) \(request.ordinal)"), joins { state.withLock { $0.lostJoins += 1 } }
    // An end that fails is tried again as long as it takes, which the simulation does not wait for.
    guard request.operation != .tusDelete else { return [] }
    return state.withLock { state in
      guard state.isFaulty, state.random.chance(0.15) else { return [] }
      var choices: [StoreFault] = [
        .closeBeforeReading, .closeAfterApplying, .status(503), .delay(20), .closeAfter(bytes: 20_000),
      ]
      switch request.operation {
      case .uploadPart, .listParts: choices += [.noSuchUpload, .slowDown(times: 2)]
      case .completeUpload:
        choices += [.conflict409OnComplete(uploadIsGone: true), .noSuchUpload, .lieComplete200WithError()]
        choices += [.closeAfterApplying, .closeAfterApplying]
      case .tusPatch: choices += [.gone410, .offsetFalls(by: 5000), .locked423(times: 1)]
      case .tusHead: choices += [.offsetFalls(by: 5000)]
      case .headObject, .head: choices = [.closeBeforeReading, .status(503), .delay(20)]
      default: break
      }
      let fault = choices.randomElement(using: &state.random) ?? .delay(1)
      state.steps.append("  \(request.operation) \(request.ordinal): \(fault)")
      if case .closeAfterApplying = fault, request.operation == .tusCreate {
        if joins { state.lostJoins += 1 } else { state.lostCreations += 1 }
      }
      return [fault]
    }
  }

  // MARK: Owners

  private struct Owner {
    var ledger: SimulatedLedger
    var run: Task<UploadOutcome, Never>
    /// Continues with the next owner.
    var end: CheckedContinuation<UploadOutcome, Never>?
  }

  private let owner = Lock<Owner?>(nil)
  /// Runs that were frozen, and woke up when the task had another owner.
  private let woken = Lock<[Task<UploadOutcome, Never>]>([])

  /// One of a run's steps: a lit fuse comes nearer. True if the owner is stopped at this step.
  private func burn(_ step: String) -> Bool {
    let (isOver, freezes) = state.withLock { state in
      guard let fuse = state.fuse else { return (false, false) }
      state.fuse = fuse == 0 ? nil : fuse - 1
      return (fuse == 0, fuse == 0 && state.random.chance(0.4))
    }
    guard isOver, let owner = owner.withLock({ $0 }) else { return false }
    note("  the owner is \(freezes ? "frozen" : "stopped") at \(step)")
    owner.ledger.revoke()
    guard freezes else {
      owner.run.cancel()
      return true
    }
    woken.withLock { $0.append(owner.run) }
    ended(.stopped)
    return true
  }

  private func ended(_ outcome: UploadOutcome) {
    owner.withLock { $0?.end.take() }?.resume(returning: outcome)
  }

  /// Runs the upload as a new owner, which may be stopped or frozen at any of its steps, without a word to the store.
  func run() async -> UploadOutcome {
    let (epoch, checkpoint) = state.withLock { state in
      state.epoch += 1
      state.fuse = state.isFaulty && state.random.chance(0.6) ? Int(state.random.next() % 14) : nil
      return (state.epoch, state.checkpoint)
    }
    note("owner \(epoch) begins, \(checkpoint.map { "generation \($0.generation)" } ?? "from nothing")")
    let ledger = SimulatedLedger(self, epoch: epoch)
    let outcome = await withCheckedContinuation { (continuation: CheckedContinuation<UploadOutcome, Never>) in
      owner.withLock { owner in
        let run = Task { await attempt(from: checkpoint, ledger) }
        owner = Owner(ledger: ledger, run: run, end: continuation)
        Task {
          let outcome = await run.value
          if ledger.epoch == self.state.withLock({ $0.epoch }) { ended(outcome) }
        }
      }
    }
    state.withLock { $0.fuse = nil }
    note("owner \(epoch): \(outcome)")
    return outcome
  }

  /// Waits until nobody acts any more.
  func settle() async {
    for run in woken.withLock({ $0 }) { _ = await run.value }
    // The ledger of the last owner holds the simulation, and with it the directories.
    owner.withLock { $0 = nil }
  }

  private func attempt(from checkpoint: UploadCheckpoint?, _ ledger: SimulatedLedger) async -> UploadOutcome {
    guard let root = harness.roots["default"], let source = try? StorageURL(spec.source) else { return .stopped }
    let target: any UploadTarget
    switch way {
    case .put:
      guard let url = CurlURL(spec.destination ?? "") else { return .stopped }
      target = PutTarget(url: url, lane: root.lane(), method: .put, fields: [], contentType: nil)
    case .s3, .s3Small:
      target = S3Target(
        client: S3Client(bucket: "films", root: root, credential: "s3", ledger: ledger), key: "film.mp4",
        parameters: UploadParameters())
    case .tus, .tusWhole:
      guard let url = CurlURL(harness.store.url("/tus")) else { return .stopped }
      var parameters = UploadParameters()
      if way == .tus { parameters.partSize = 30_000 }
      parameters.creationWithUpload = way == .tusWhole
      target = TusTarget(
        endpoint: url, lane: root.lane(), fields: [], name: "film.mp4", parameters: parameters, ledger: ledger)
    }
    let cut: UploadPlan? =
      switch way {
      case .put, .s3Small, .tusWhole: nil
      case .s3: UploadPlan(segmentSize: 30_000, parallel: 4)
      case .tus: UploadPlan(segmentSize: 70_000, parallel: 3, keepsParts: true)
      }
    let run = UploadRun(
      spec, to: SmallSegments(target: target, cut: cut), from: checkpoint, ledger: ledger, lane: root.lane(),
      open: { try await StorageSource.open(source, in: root) })
    let task = root.loop.task { await run.run() }
    return await withTaskCancellationHandler {
      (try? await task.value) ?? .stopped
    } onCancel: {
      task.cancel()
    }
  }

  /// The task's store takes a checkpoint, or not, and its answer may be lost.
  fileprivate func record(_ checkpoint: UploadCheckpoint, of epoch: Int) throws {
    let isStopped = burn("a checkpoint")
    let draw = try state.withLock { state throws(Refused) in
      let draw = state.isFaulty ? Double.random(in: 0..<1, using: &state.random) : 1
      guard draw > 0.04, state.epoch == epoch else {
        // Nobody will know of what was made for it.
        if isStopped { state.lostCreations += 1 }
        if checkpoint.session.map({ String(decoding: $0, as: UTF8.self).contains("joined") }) == true {
          state.lostJoins += 1
        }
        throw Refused()
      }
      state.checkpoint = checkpoint
      return draw
    }
    try check(checkpoint)
    if draw < 0.12 { try change() }
    if draw < 0.3, draw > 0.2 { interfere() }
    if draw < 0.08 { throw Refused() }
  }

  struct Refused: Error {}

  /// What is recorded as sent is at the store.
  private func check(_ checkpoint: UploadCheckpoint) throws {
    let read = try UploadCheckpoint(checkpoint.envelope)
    #expect(read == checkpoint)
    guard way == .s3, let session = checkpoint.session else { return }
    let text = String(decoding: session, as: UTF8.self)
    guard let upload = harness.store.uploads.values.first(where: { text.contains("\"\($0.id)\"") }) else { return }
    if upload.size < checkpoint.done.count {
      Issue.record("\(checkpoint.done.count) bytes are recorded, \(upload.size) are there\n\(story)")
    }
  }

  /// Somebody else puts a file at the destination, if nothing is there.
  private func interfere() {
    guard !way.isTus, spec.ifExists == .fail, harness.store.objects[key] == nil else { return }
    let bytes = Array("somebody else's".utf8)
    state.withLock { $0.foreign = bytes }
    harness.store.put(key, bytes: bytes)
    note("  somebody else puts a file at the destination")
  }

  var story: String { state.withLock { $0.steps.suffix(60).joined(separator: "\n") } }
}

/// The ledger of one owner.
private final class SimulatedLedger: UploadLedger {
  let epoch: Int
  private let simulation: UploadSimulation
  private let isRevoked = Lock(false)

  init(_ simulation: UploadSimulation, epoch: Int) {
    self.simulation = simulation
    self.epoch = epoch
  }

  var mayWrite: Bool { !isRevoked.withLock { $0 } }
  func revoke() { isRevoked.withLock { $0 = true } }
  func progress(bytesDone: Int64, bytesTotal: Int64?) {}
  func pulse() {}
  var beginsAnew: Bool { false }

  func checkpoint(_ checkpoint: UploadCheckpoint) async throws {
    guard mayWrite else { throw UploadSimulation.Refused() }
    try simulation.record(checkpoint, of: epoch)
  }
}

/// A target whose files are cut into more segments than they are large enough for.
private struct SmallSegments: UploadTarget {
  let target: any UploadTarget
  let cut: UploadPlan?

  var location: String { target.location }
  var server: String { get async { await target.server } }
  func plan(size: Int64) async throws -> UploadPlan {
    if let cut { cut } else { try await target.plan(size: size) }
  }
  func look(_ upload: UploadOrder) async throws -> UploadedObject? { try await target.look(upload) }
  func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool {
    try await target.proves(&there, upload)
  }
  var mayBringFile: Bool { target.mayBringFile }
  func refusesToReplace(_ upload: UploadOrder) async throws -> Bool { try await target.refusesToReplace(upload) }
  func begin(_ upload: UploadOrder) async throws -> [UInt8] { try await target.begin(upload) }
  func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding {
    try await target.resume(upload, session: session)
  }
  func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {
    try await target.forget(plan, since: milliseconds)
  }
  func kept(of segment: Int, of upload: UploadOrder, session: [UInt8]) async throws -> Int64? {
    try await target.kept(of: segment, of: upload, session: session)
  }
  func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
    try await target.send(segment, of: upload, session: session)
  }
  func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
    try await target.finish(upload, session: session, receipts: receipts)
  }
  func abort(session: [UInt8]) async throws -> Bool { try await target.abort(session: session) }
}

extension SplitMix64 {
  fileprivate mutating func chance(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &self) < probability
  }
}
