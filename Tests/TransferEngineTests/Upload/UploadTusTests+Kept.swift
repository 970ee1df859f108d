import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a tus server has of an upload stays known, and stays there until it is given up.
extension UploadTusTests {
  @Test("what the server has of a file that is sent in pieces is recorded meanwhile") func recordedMeanwhile()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      let (third, last) = (OriginGate(), OriginGate())
      harness.store.script { request in
        switch (request.operation, request.ordinal) {
        case (.tusPatch, 3): [.holdAnswer(third)]
        case (.tusPatch, 4): [.holdBody(after: 0, last)]
        default: []
        }
      }
      let run = Task { await harness.run(spec, ledger: ledger) }
      await third.reached()
      // It is recorded every two seconds.
      try await Task.sleep(for: .milliseconds(2100))
      third.open()
      await last.reached()
      run.cancel()
      #expect(await run.value == .stopped)
      last.open()
      #expect(ledger.last?.done == ByteRanges(0..<3 * Self.piece))
      // It never seems to have more, or less than before.
      #expect(ledger.progress == ledger.progress.sorted())
    }
  }

  @Test("a 404 of something before the server ends no upload", arguments: [404, 410]) func goneForAMoment(status: Int)
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .tusPatch && $0.ordinal == 3 ? [.status(status)] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).count == 1 && harness.store.exchanges(.tusDelete).isEmpty)
      Self.expectThere(harness)
    }
  }

  @Test("a 403 of something before the server, to the question where an upload is, begins no other one")
  func refusedQuestion() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      let gate = OriginGate()
      harness.store.script { $0.operation == .tusPatch && $0.ordinal == 3 ? [.holdAnswer(gate)] : [] }
      await harness.stop(spec, at: gate, ledger: ledger)
      harness.store.script { $0.operation == .tusHead && $0.ordinal == 1 ? [.status(403)] : [] }
      let failure = await harness.run(spec, from: ledger.last, ledger: ledger).failure
      #expect(failure?.code == .http(403) && failure?.class == .retry)
      #expect(await harness.run(spec, from: ledger.last, ledger: ledger).failure == nil)
      #expect(harness.store.exchanges(.tusCreate).count == 1 && harness.store.exchanges(.tusDelete).isEmpty)
    }
  }

  @Test("an upload that a run has ended itself is not one that the server has finished") func ended() async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/film.mp4", OriginFile(seed: 7, size: Int64(Self.size)))
    try await UploadHarness.run { harness in
      var spec = Self.spec(harness)
      spec.kind = .copy
      spec.source = origin.url("/film.mp4")
      let ledger = UploadRecordingLedger()
      #expect(await harness.run(spec, ledger: ledger).failure == nil)
      // As after the death of a worker before the end was written.
      let last = ledger.last
      #expect(last?.isPublishing == true)
      origin.script("/film.mp4") { _ in [.answer(404)] }
      #expect(await harness.run(spec, from: last, ledger: ledger).failure?.class == .fail)
      #expect(harness.store.exchanges(.tusDelete).count == 1)
      origin.script("/film.mp4") { _ in [] }
      #expect(await harness.run(spec, from: ledger.last, ledger: ledger).failure == nil)
      Self.expectThere(harness)
    }
  }

  @Test("an upload whose end is refused is not forgotten") func refusedEnd() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      let gate = OriginGate()
      harness.store.script { request in
        switch request.operation {
        case .tusPatch where request.ordinal == 3: [.holdAnswer(gate)]
        case .tusDelete where request.ordinal == 1: [.status(403)]
        default: []
        }
      }
      await harness.stop(spec, at: gate, ledger: ledger)
      let checkpoint = try #require(ledger.last)
      await #expect(throws: TaskFailure.self) { try await harness.engine.abort(spec, from: checkpoint) }
      #expect(harness.store.uploads.count == 1)
      try await harness.engine.abort(spec, from: checkpoint)
      #expect(harness.store.uploads.isEmpty)
    }
  }

  @Test("a server whose upload has an endless URL is told so") func endlessURL() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let place = "/tus/" + String(repeating: "a", count: 60_000)
      harness.store.script { $0.operation == .tusCreate ? [.header("Location", place)] : [] }
      let failure = await harness.run(Self.spec(harness)).failure
      #expect(failure?.code == .badResponse && failure?.message.contains("has no URL") == true, "\(failure as Any)")
    }
  }
}
