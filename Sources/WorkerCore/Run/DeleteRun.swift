import ReelhaulSystem
import TaskCore
import TaskStore
import TransferEngine

/// One run of a deletion below a storage root.
final class DeleteRun: Sendable {
  private let claim: Claim
  private let ledger: RunLedger
  private let root: StorageRoot
  /// With the names that Reelhaul gives files, in composed Unicode.
  private let composed: StorageURL
  /// With the names as the task spells them.
  private let spelled: StorageURL
  private let isRecursive: Bool
  private let watch: DeleteWatch

  init(_ claim: Claim, at url: StorageURL, isRecursive: Bool, ledger: RunLedger, roots: StorageRoots) throws {
    self.claim = claim
    self.ledger = ledger
    composed = url
    // A decomposed name may be too long where the composed one is not. Then there is no such file.
    spelled = (try? StorageURL(spelled: claim.spec.source)) ?? composed
    guard let root = roots[composed.root] else { throw StorageError.unknownRoot(composed.root) }
    self.root = root
    self.isRecursive = isRecursive
    watch = DeleteWatch(ledger)
  }

  func stop() { watch.stop() }

  func run() async throws -> RunOutcome {
    guard watch.goesOn else { return .stopped }
    let plan = try DeletePlan(claim.checkpoint)
    let place = try await place(plan)
    let url = url(at: place)
    let isExact = claim.spec.expect != Expectation()
    switch try await at(place, { try $0.look() }) {
    case .absent:
      guard let plan else { return succeeded(Deletion.Count(), wasAbsent: true) }
      // The earlier run may have ended before its last change was durable. What has the name since is not to be deleted.
      try await at(place) { try $0.sync() }
      return succeeded(plan.total)
    case .special where isExact, .directory where isExact:
      throw StorageError(.destinationInvalid, "\(url) is not a regular file, and has no digest or size to compare")
    case .directory where !isRecursive:
      throw TaskFailure(
        code: .isDirectory, message: "\(url) is a directory: use --recursive to delete it", class: .fail)
    case .file(let version) where isExact:
      guard try await verify(url, size: version.size) else { return .stopped }
      try await record(DeletePlan(total: Deletion.Count(files: 1, bytes: version.size), place: place))
      let aside = StagingName(task: claim.spec.id, epoch: claim.epoch, generation: 0)
      guard try await at(place, { try $0.runExactly(version, aside: aside) }) else {
        return watch.goesOn ? succeeded(Deletion.Count(), wasAbsent: true) : .stopped
      }
      return succeeded(watch.count)
    case .file, .directory, .special: break
    }
    // An earlier run may have deleted files after its last record. The plan minus the remaining files shows how many.
    guard let left = try await at(place, { try $0.survey() }) else { return .stopped }
    let before = plan.map { $0.deleted(leaving: left) } ?? Deletion.Count()
    try await record(DeletePlan(total: before + left, place: place))
    watch.begin(before, of: before + left)
    guard try await at(place, { try $0.run() }) else { return .stopped }
    return succeeded(before + watch.count)
  }

  /// The place of the plan. Without a plan, a file whose name is exactly as the task spells it comes first: others may
  /// have made it, in decomposed Unicode.
  private func place(_ plan: DeletePlan?) async throws -> DeletePlace {
    let mounted = try await root.delete(pulse: ledger.pulse) { $0.id }
    if let plan { return DeletePlace(volume: plan.volume ?? mounted, isSpelled: plan.isSpelled) }
    var place = DeletePlace(
      volume: mounted, isSpelled: !spelled.path.utf8.elementsEqual(composed.path.utf8))
    if place.isSpelled, try await at(place, { try $0.look() }) == .absent { place.isSpelled = false }
    return place
  }

  private func url(at place: DeletePlace) -> StorageURL { place.isSpelled ? spelled : composed }

  /// All calls use one place, because at another one a missing file does not mean that it was deleted.
  private func at<Result: Sendable>(
    _ place: DeletePlace, _ body: @escaping @Sendable (Deletion) throws -> Result
  ) async throws -> Result {
    let url = url(at: place)
    return try await root.delete(pulse: ledger.pulse) { [isRecursive, watch] volume in
      guard volume.id == place.volume else {
        throw StorageError(
          .volumeGone,
          "storage \(volume.name): the deletion began on volume \(place.volume), but \(volume.id) is mounted")
      }
      return try body(Deletion(url, on: volume, isRecursive: isRecursive, observer: watch))
    }
  }

  private func record(_ plan: DeletePlan) async throws {
    try await ledger.checkpoint(plan.envelope)
  }

  /// Throws if the file is not the expected one. Returns false if the run was stopped.
  private func verify(_ url: StorageURL, size: Int64) async throws -> Bool {
    let expect = claim.spec.expect
    if let expected = expect.bytes, expected != size {
      throw TaskFailure(
        code: .sizeMismatch, message: "\(url) is not deleted: it has \(size) bytes, but \(expected) were expected",
        class: .fail)
    }
    guard expect.hasDigest else { return true }
    let mismatch = try await root.readWhole(pulse: ledger.pulse) { [root, watch] in
      try FileCheck.mismatch(of: url, on: root.storage.volume(url.root), expect: expect) { watch.goesOn }
    }
    switch mismatch {
    case .stopped: return false
    case .same: return true
    case .differs(let what):
      throw TaskFailure(code: .digestMismatch, message: "\(url) is not deleted: \(what)", class: .fail)
    }
  }

  private func succeeded(_ count: Deletion.Count, wasAbsent: Bool = false) -> RunOutcome {
    .deleted(files: count.files, bytes: count.bytes, wasAbsent: wasAbsent)
  }
}

/// Where a deletion deletes.
struct DeletePlace: Hashable, Sendable {
  var volume: UniqueID
  /// Whether the name is the one that the task spells, not the composed one.
  var isSpelled: Bool
}

/// Reports the progress of a deletion to the worker, and tells the deletion whether it may go on.
private final class DeleteWatch: Deletion.Observer {
  private struct State {
    var isStopped = false
    var before = Deletion.Count()
    var total: Int64?
    var count = Deletion.Count()
  }

  private let ledger: RunLedger
  private let state = Lock(State())

  init(_ ledger: RunLedger) {
    self.ledger = ledger
  }

  func stop() { state.withLock { $0.isStopped = true } }

  var goesOn: Bool {
    ledger.pulse()
    return ledger.mayWrite && !state.withLock { $0.isStopped }
  }

  /// What this run has deleted.
  var count: Deletion.Count { state.withLock { $0.count } }

  func begin(_ before: Deletion.Count, of total: Deletion.Count) {
    state.withLock { state in
      state.before = before
      state.total = total.bytes
    }
    ledger.progress(bytesDone: before.bytes, bytesTotal: total.bytes)
  }

  func deleted(_ count: Deletion.Count) {
    let (done, total) = state.withLock { state in
      state.count = count
      return ((state.before + count).bytes, state.total)
    }
    ledger.progress(bytesDone: done, bytesTotal: total)
  }
}
