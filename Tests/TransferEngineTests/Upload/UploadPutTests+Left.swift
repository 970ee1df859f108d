import Glibc
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What an earlier request has left at the server.
extension UploadPutTests {
  @Test("a part that the server keeps of a request that was cut off is replaced", arguments: [IfExists.fail, .skip])
  func keptPart(ifExists: IfExists) async throws {
    for (looksAtConditions, tag) in [(true, nil), (true, "W/\"weak\""), (false, nil)] as [(Bool, String?)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let spec = Self.spec(harness) { $0.ifExists = ifExists }
        let checkpoint = try await Self.interrupted(harness, spec, there: Array(Self.bytes().prefix(100_000)))
        harness.store.script { request in
          var faults: [StoreFault] = looksAtConditions ? [] : [.ignoreIfNoneMatch]
          if let tag, [.get, .head].contains(request.operation) { faults.append(.header("ETag", tag)) }
          // Those of this run are cut off, too.
          if request.operation == .put, request.ordinal <= 3 { faults += [.closeAfter(bytes: 1_000_000), .keepCut] }
          return faults
        }
        let outcome = await harness.run(spec, from: checkpoint)
        #expect(outcome.failure == nil, "\(outcome)")
        Self.expectThere(harness)
        #expect(harness.store.exchanges(.put).last?.request["if-none-match"] == nil)
      }
    }
  }

  @Test(
    "what a canceled run has left is replaced if it is a part of the file, and else it is not taken for the file",
    arguments: [IfExists.fail, .skip], [true, false])
  func leftByCanceled(ifExists: IfExists, expectsSize: Bool) async throws {
    let other = OriginContent(seed: 9).bytes(0..<1_000_000)
    for there in [Array(Self.bytes().prefix(1_000_000)), Self.bytes(), other] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let spec = Self.spec(harness) {
          $0.ifExists = ifExists
          if expectsSize { $0.expect.bytes = Int64(Self.size) }
        }
        _ = try await Self.interrupted(harness, spec, there: there)
        let before = harness.store.exchanges(.put).count
        let outcome = await harness.run(spec, ledger: UploadRecordingLedger(beginsAnew: true))
        let requests = harness.store.exchanges(.put).dropFirst(before)
        if there == other {
          // An earlier run may have sent them, before the source has changed.
          #expect(outcome.failure?.code == .destinationExists && requests.isEmpty, "\(outcome)")
          #expect(harness.store.objects["put/film.mp4"]?.bytes == other)
        } else {
          #expect(outcome.object?.size == Int64(Self.size), "\(outcome)")
          #expect(requests.count == (there.count == Self.size ? 0 : 1))
          #expect(requests.allSatisfy { $0.request["if-match"] != nil })
          Self.expectThere(harness)
        }
      }
    }
  }

  @Test("a file is nobody's own before the task has sent anything, also if it begins as the source does")
  func beginsAlike() async throws {
    for (ifExists, bytes) in [(IfExists.fail, 0), (.fail, 1_000_000), (.skip, 0), (.skip, 1_000_000)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let other = Array(Self.bytes().prefix(bytes))
        harness.store.put("put/film.mp4", bytes: other)
        let outcome = await harness.run(Self.spec(harness) { $0.ifExists = ifExists })
        #expect(outcome.failure?.code == (ifExists == .fail ? .destinationExists : nil), "\(outcome)")
        #expect(harness.store.objects["put/film.mp4"]?.bytes == other)
      }
    }
  }

  /// Ends a run within its request, after which the server has `bytes`, and returns what the next one gets.
  private static func interrupted(
    _ harness: UploadHarness, _ spec: TaskSpec, there bytes: [UInt8]
  ) async throws -> UploadCheckpoint? {
    let (gate, ledger) = (OriginGate(), UploadRecordingLedger())
    harness.store.always(.put, .holdBody(after: 100_000, gate))
    await harness.stop(spec, at: gate, ledger: ledger)
    harness.store.put("put/film.mp4", bytes: bytes)
    // A server that would replace it.
    harness.store.script { _ in [.ignoreIfNoneMatch] }
    return ledger.last
  }

  @Test("a file that came between two runs, or before a request that comes again, is kept")
  func comesBetween() async throws {
    for (ifExists, size, isSameRun) in [
      (IfExists.fail, 1000, false), (.skip, 1000, false), (.fail, Self.size, false), (.skip, Self.size, false),
      (.fail, 4_000_000, false), (.skip, 4_000_000, false), (.fail, 1000, true), (.skip, 1000, true),
    ] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let other = OriginContent(seed: 9).bytes(0..<Int64(size))
        let spec = Self.spec(harness) { $0.ifExists = ifExists }
        var checkpoint: UploadCheckpoint?
        if isSameRun {
          harness.store.script { [store = harness.store] request in
            guard request.operation == .put, request.ordinal == 1 else { return [.ignoreIfNoneMatch] }
            store.put("put/film.mp4", bytes: other)
            return [.status(503)]
          }
        } else {
          checkpoint = try await Self.interrupted(harness, spec, there: other)
        }
        let outcome = await harness.run(spec, from: checkpoint)
        #expect(outcome.failure?.code == (ifExists == .fail ? .destinationExists : nil), "\(size): \(outcome)")
        let isKept = harness.store.objects["put/film.mp4"]?.bytes == other
        #expect(isKept, "\(ifExists) \(size)")
      }
    }
  }

  @Test("what may be this task's own, and cannot be told, is neither skipped nor replaced", arguments: [true, false])
  func untold(isReadable: Bool) async throws {
    for ifExists in [IfExists.fail, .skip] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let spec = Self.spec(harness) { $0.ifExists = ifExists }
        let part = Array(Self.bytes().prefix(1_000_000))
        let checkpoint = try await Self.interrupted(harness, spec, there: part)
        if isReadable {
          unlink(harness.sourcePath)
          try harness.put(Self.bytes().reversed())
        } else {
          harness.store.script { $0.operation == .get ? [.status(403)] : [.ignoreIfNoneMatch] }
        }
        let outcome = await harness.run(spec, from: checkpoint)
        #expect(outcome.failure?.code == .destinationExists && outcome.failure?.class == .fail, "\(outcome)")
        let isKept = harness.store.objects["put/film.mp4"]?.bytes == part
        #expect(isKept)
      }
    }
  }
}
