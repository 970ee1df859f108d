import ReelhaulCodec
import ReelhaulSystem
import ReelhaulTasks
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore

/// The state of one run of a handler. Its ``TaskContext`` and its transfers share it.
package final class RunState: Sendable {
  /// The payload of the envelope: the handler's own checkpoint, and those of the transfers it has begun.
  struct Payload: Sendable {
    /// One JSON value; nil before the handler's first checkpoint.
    var checkpoint: [UInt8]?
    /// The transfers that are begun and not done, by name.
    var transfers: [String: Transfer] = [:]

    struct Transfer: Sendable {
      var checkpoint = Checkpoint()
      /// Tells its source from others; nil in the record of an earlier version.
      var source: Int64?
    }
  }

  let ledger: RunLedger
  /// Receives the actions of the handler; used by tests.
  private let observer: (any RunObserver)?
  let roots: StorageRoots?
  private let payload: Lock<Payload>
  private let stage: Lock<String?>
  /// The transfers that are under way, by the ids of their staging files, which two cannot share.
  private let transfers = Lock<Set<UniqueID>>([])
  /// What this run has put at destinations, by the ids of their transfers: the source of a download, or nothing.
  private let arrived = Lock<[UniqueID: String?]>([:])
  let scratchDirectory: ScratchDirectory
  /// Lets one checkpoint be recorded at a time, so that an older payload never overwrites a newer one.
  private let recording = AsyncGate()

  init(ledger: RunLedger, payload: Payload, roots: StorageRoots?, observer: (any RunObserver)? = nil) {
    self.observer = observer
    self.ledger = ledger
    self.roots = roots
    self.payload = Lock(payload)
    stage = Lock(ledger.claim.checkpoint?.stage)
    scratchDirectory = ScratchDirectory(ledger.claim, roots: roots)
  }

  /// What JSON can hold without loss, and more than any disk.
  private static func within(_ amount: Int64) -> Int64 { min(max(0, amount), 1 << 53) }

  func report(done: Int64, total: Int64?) {
    ledger.progress(bytesDone: Self.within(done), bytesTotal: total.map(Self.within))
    ledger.pulse()
    observer?.reported(done: done, total: total)
  }

  /// The longest checkpoint of a handler, in bytes of JSON.
  private static let checkpointLimit = 64 << 10
  /// The longest stage, in bytes.
  private static let stageLimit = 256

  func checkpoint(_ json: [UInt8], stage: String?) async throws {
    guard json.count <= Self.checkpointLimit else {
      throw Self.tooLong("the checkpoint has \(json.count) bytes, and may have \(Self.checkpointLimit)")
    }
    guard stage?.utf8.count ?? 0 <= Self.stageLimit else {
      throw Self.tooLong("the stage has \(stage?.utf8.count ?? 0) bytes, and may have \(Self.stageLimit)")
    }
    // With it a task's file is complete and verified, and its state says so.
    guard stage != Checkpoint.publishing else {
      throw TaskError.permanent(
        "no stage of a handler may be called \"\(Checkpoint.publishing)\": give it another name", code: "stage_reserved"
      )
    }
    let stage = stage?.storable
    try await record { payload in
      payload.checkpoint = json
      self.stage.withLock { $0 = stage }
    }
    await observer?.checkpointed(json)
  }

  /// Records how far a transfer is; nil deletes its record.
  func checkpoint(_ transfer: Payload.Transfer?, ofTransfer name: String) async throws {
    try await record { $0.transfers[name] = transfer }
  }

  /// For tests.
  package var recordedStage: String? { stage.withLock { $0 } }

  /// Those that are begun and not done.
  var transfersLeft: [String: Payload.Transfer] { payload.withLock { $0.transfers } }

  /// Deletes what transfers that the handler of a succeeded task gave up have left. Whoever sweeps the staging directory
  /// would keep it for a week.
  func discardRest() async {
    for (name, transfer) in transfersLeft {
      try? await roots?.discard(
        transfer.checkpoint, of: [TaskTransfer.id(of: name, in: self)],
        preferring: (try? StorageURL(name))?.root ?? scratchDirectory.root?.name)
    }
  }

  /// Runs `body` as the only transfer with this id. Throws a permanent ``TaskError`` if there is one, or if this run has
  /// put a file there that is not of `source` and that nothing may replace: its mark would be taken for that of an earlier
  /// run.
  func transfer<Result>(
    _ id: UniqueID, from source: String? = nil, to name: String, ifExists: IfExists,
    _ body: () async throws -> Result
  ) async throws -> Result {
    guard transfers.withLock({ $0.insert(id).inserted }) else {
      throw TaskError.permanent("a transfer to \"\(name)\" is under way in this run", code: "transfer_twice")
    }
    defer { transfers.withLock { _ = $0.remove(id) } }
    if ifExists == .fail, let former = arrived.withLock({ $0[id] }), former == nil || former != source {
      throw TaskError.permanent(
        "this run has put another file at \"\(name)\"", code: TaskFailure.Code.destinationExists.rawValue)
    }
    let result = try await body()
    arrived.withLock { $0[id] = .some(source) }
    return result
  }

  /// Throws a permanent ``TaskError`` if the value cannot be written as JSON: no attempt would succeed.
  static func encode(_ value: some Encodable) throws -> [UInt8] {
    let complaint: String
    do {
      let json = try JSONValue.encode(value)
      guard TaskSpec.hasNUL(json: json) else { return json }
      complaint = "a text has the character NUL, which the store cannot keep"
    } catch let error as InvalidJSON {
      complaint = "\(error)"
    }
    throw TaskError.permanent("\(type(of: value)) cannot be recorded: \(complaint)", code: "json_invalid")
  }

  private static func tooLong(_ message: String) -> TaskError {
    .permanent(message, code: "checkpoint_too_long")
  }

  private func record(_ change: @escaping @Sendable (inout Payload) -> Void) async throws {
    try await recording.run { [self] in
      let next = payload.withLock { current in
        var next = current
        change(&next)
        return next
      }
      guard next.transfers.count <= JSONReader.memberLimit else {
        throw Self.tooLong(
          "\(next.transfers.count) transfers are begun and not done, and a task may have \(JSONReader.memberLimit)")
      }
      // What is done may fall, where a handler begins anew. Only more than ever before is progress.
      let envelope = Checkpoint(
        version: PayloadJSON.version, bytesDone: max(ledger.bytesDone, ledger.recordedBytes),
        bytesTotal: ledger.bytesTotal,
        stage: stage.withLock { $0 }, payload: PayloadJSON.encode(next))
      do {
        try await ledger.checkpoint(envelope)
      } catch is OwnershipLost {
        throw OwnershipLostError()
      } catch let error as CheckpointTooLong {
        throw Self.tooLong("with its transfers, \(error)")
      } catch {
        throw TaskError.wait(
          "the checkpoint could not be recorded: \(error)", for: .seconds(5),
          code: TaskFailure.Code.checkpointFailed.rawValue)
      }
      payload.withLock { $0 = next }
      ledger.pulse()
    }
  }
}

/// Receives the actions of a run's handler.
package protocol RunObserver: Sendable {
  func reported(done: Int64, total: Int64?)
  /// A checkpoint is recorded. The handler continues when this call returns.
  func checkpointed(_ json: [UInt8]) async
}

extension RunState {
  /// The handler's own checkpoint in an envelope.
  package static func checkpoint(of envelope: Checkpoint?) throws -> [UInt8]? {
    try PayloadJSON.decode(envelope).checkpoint
  }
}

extension TaskStopReason {
  package init(_ reason: WorkerCore.StopReason) {
    self =
      switch reason {
      case .intent(.pause): .pause
      case .intent(.cancel): .cancel
      case .drain, .crowded: .drain  // both hand the task back
      case .stalled: .stalled
      case .timedOut: .timedOut
      case .abandoned: .abandoned
      }
  }
}
