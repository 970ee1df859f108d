import Glibc
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What every protocol of uploads must do, whatever its server does.
@Suite struct UploadConformanceTests {
  /// A protocol, with what a test must know of its requests.
  enum Way: CaseIterable, CustomTestStringConvertible {
    case put, tus, s3, s3Small

    var testDescription: String { "\(self)" }
    /// Whether a run continues what an earlier one sent.
    var resumes: Bool { self == .tus || self == .s3 }
    /// Larger than three parts of the protocol, except where one request is all. More than sockets hold.
    var size: Int { self == .s3Small || self == .put ? 8_000_001 : 26_000_001 }
    /// The requests that carry bytes.
    var sends: StoreOperation {
      switch self {
      case .put: .put
      case .tus: .tusPatch
      case .s3: .uploadPart
      case .s3Small: .putObject
      }
    }

    func spec(_ harness: UploadHarness, _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
      let place =
        switch self {
        case .put: harness.store.url("/put/film.mp4")
        case .tus: "tus+\(harness.store.url("/tus"))"
        case .s3, .s3Small: "s3://films/film.mp4"
        }
      var spec = TaskSpec(id: .random(), kind: .upload, source: UploadHarness.source, destination: place)
      if self == .s3 || self == .s3Small { spec.credential = "s3" }
      change(&spec)
      return spec
    }

    /// The bytes of the only object; nil if there is none.
    func uploaded(_ harness: UploadHarness) -> [UInt8]? {
      harness.store.objects.values.first?.bytes
        ?? (self == .tus
          ? harness.store.uploads.values.first { $0.length == $0.size }?.pieces.flatMap { $0.bytes(0..<$0.size) ?? [] }
          : nil)
    }
  }

  static func bytes(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
    OriginContent(seed: seed).bytes(0..<Int64(count))
  }

  @Test("a file arrives whole, and the task says where it is", arguments: Way.allCases)
  func arrives(way: Way) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(way.size)
      try harness.put(bytes)
      let ledger = UploadRecordingLedger()
      let outcome = await harness.run(way.spec(harness), ledger: ledger)
      #expect(outcome.object?.size == Int64(way.size), "\(outcome)")
      #expect(way.uploaded(harness) == bytes)
      #expect(ledger.progress.last == Int64(way.size))
    }
  }

  @Test("an empty file arrives", arguments: Way.allCases)
  func empty(way: Way) async throws {
    try await UploadHarness.run { harness in
      try harness.put([])
      let outcome = await harness.run(way.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(way.uploaded(harness) == [])
    }
  }

  @Test("a missing source and an unexpected one fail, and nothing is sent", arguments: Way.allCases)
  func wrongSource(way: Way) async throws {
    try await UploadHarness.run { harness in
      #expect(await harness.run(way.spec(harness)).failure?.code == .sourceMissing)
      try harness.put([1, 2, 3])
      let spec = way.spec(harness) { $0.expect.sha256 = [UInt8](repeating: 7, count: 32) }
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .digestMismatch && failure?.class == .fail)
      #expect(harness.store.exchanges(way.sends).isEmpty)
    }
  }

  @Test(
    "requests that are cut off, refused for a moment or answered by silence are sent again",
    arguments: Way.allCases, [0, 1, 2, 3, 4])
  func aFaultForAMoment(way: Way, fault: Int) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(way.size)
      try harness.put(bytes)
      let count = Lock(0)
      harness.store.script { request in
        guard request.operation == way.sends else { return [] }
        let number = count.withLock { count in
          count += 1
          return count
        }
        guard number <= 2 else { return [] }
        return switch fault {
        case 0: [.closeBeforeReading]
        case 1: [.closeAfter(bytes: 1_000_000)]
        case 2: [.status(503, headers: [("Retry-After", "1")])]
        case 3: [.cutHead]
        default: [.closeAfterApplying]
        }
      }
      let spec = way.spec(harness) { $0.ifExists = .replace }
      let outcome = await harness.run(spec)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(way.uploaded(harness) == bytes)
    }
  }

  @Test("a success that comes before the bytes were sent is none", arguments: Way.allCases)
  func answeredEarly(way: Way) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(way.size)
      try harness.put(bytes)
      let isFirst = Lock(true)
      harness.store.script { request in
        guard request.operation == way.sends else { return [] }
        let comesEarly = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        guard comesEarly else { return [] }
        // With what each protocol wants to be told.
        return [.status(200, headers: [("ETag", "\"a tag\""), ("Upload-Offset", "\(8 << 20)")])]
      }
      let outcome = await harness.run(way.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(way.uploaded(harness) == bytes)
    }
  }

  /// RFC 9110, 10.1.1: such a server has to take what follows for the body.
  @Test("a success in the place of 100 Continue is none, and its connection is not used again", arguments: Way.allCases)
  func answeredInPlaceOfContinue(way: Way) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(way.size)
      try harness.put(bytes)
      harness.store.script { request in
        guard request.operation == way.sends, request.expectsContinue else { return [] }
        return [.answersFirst, .status(200, headers: [("ETag", "\"a tag\""), ("Upload-Offset", "\(8 << 20)")])]
      }
      let outcome = await harness.run(way.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(way.uploaded(harness) == bytes)
      let early = harness.store.exchanges(way.sends).map(\.request).filter(\.expectsContinue).map(\.connection)
      #expect(!early.isEmpty && Set(early).count == early.count)
    }
  }

  @Test(
    "a run that is stopped is continued by the next, and what the server has is not sent again", arguments: Way.allCases
  )
  func resumes(way: Way) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(way.size)
      try harness.put(bytes)
      let gate = OriginGate()
      let count = Lock(0)
      harness.store.script { request in
        guard request.operation == way.sends else { return [] }
        let number = count.withLock { count in
          count += 1
          return count
        }
        return number == (way.resumes ? 3 : 1) ? [.holdBody(after: 500_000, gate)] : []
      }
      let spec = way.spec(harness)
      let ledger = UploadRecordingLedger()
      let run = Task { await harness.run(spec, ledger: ledger) }
      await gate.reached()
      if way.resumes {
        try await eventually("the other parts are there") {
          harness.store.exchanges(way.sends).count { $0.isFinished } >= (way == .tus ? 2 : 3)
        }
      }
      run.cancel()
      #expect(await run.value == .stopped)
      gate.open()
      harness.store.script { _ in [] }
      let before = harness.store.exchanges(way.sends).count
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(way.uploaded(harness) == bytes)
      if way.resumes {
        let again = harness.store.exchanges(way.sends).dropFirst(before).reduce(0) { $0 + $1.bodyLength }
        #expect(again <= Int64(way.size) - (15 << 20), "only the rest is sent")
      }
      #expect(way != .s3 || harness.store.uploads.isEmpty)
    }
  }

  @Test("a source that changes between two runs is sent anew, never mixed", arguments: Way.allCases)
  func changedBetweenRuns(way: Way) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      // What an interrupted PUT left may not be told from somebody else's.
      let spec = way.spec(harness) { if way == .put { $0.ifExists = .replace } }
      let ledger = await harness.interrupt(spec, way.sends, after: 500_000)
      let other = Self.bytes(way.size, seed: 8)
      unlink(harness.sourcePath)
      try harness.put(other)
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects.values.contains { $0.bytes == other } || way.uploaded(harness) == other)
      #expect(ledger.last?.generation == 1)
      #expect(way != .s3 || harness.store.uploads.isEmpty, "the upload of the first version is given up")
    }
  }

  @Test(
    "what a server has lost is progress of another generation when it is sent anew", arguments: [Way.s3, .tus],
    [false, true])
  func setbacks(way: Way, isGone: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      let spec = way.spec(harness)
      let ledger = await harness.interrupt(spec, way.sends, after: 100_000)
      var checkpoint = try #require(ledger.last)
      checkpoint.done = ByteRanges(0..<16 << 20)
      if isGone { harness.store.uploads.keys.forEach(harness.store.expire) }
      let outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      let last = try #require(ledger.last)
      #expect(last.generation == 0 && last.setbacks == 1 && last.envelope.generation == 8)
    }
  }

  @Test("a source that is replaced during a run is sent anew, never mixed", arguments: [Way.s3, .tus, .s3Small])
  func changedDuringARun(way: Way) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      let gate = OriginGate()
      let held = Lock(false)
      harness.store.script { request in
        let isFirst = held.withLock { held in
          defer { if request.operation == way.sends { held = true } }
          return !held && request.operation == way.sends
        }
        return isFirst ? [.holdAnswer(gate)] : []
      }
      let spec = way.spec(harness)
      let run = Task { await harness.run(spec) }
      await gate.reached()
      let other = Self.bytes(way.size, seed: 9)
      try write(other, to: "\(harness.sourcePath).new")
      rename("\(harness.sourcePath).new", harness.sourcePath)
      gate.open()
      let outcome = await run.value
      if way == .s3Small {
        // The whole file was there already: it is the old one, and the next attempt finds it out.
        #expect(outcome.failure != nil || way.uploaded(harness) == other || outcome.object != nil)
      } else {
        #expect(outcome.failure == nil, "\(outcome)")
        #expect(harness.store.objects.values.contains { $0.bytes == other } || way.uploaded(harness) == other)
      }
    }
  }

  @Test("an object that exists is kept, skipped or replaced", arguments: [Way.put, .s3, .s3Small], IfExists.allCases)
  func existing(way: Way, ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      let (old, new) = (Self.bytes(1000, seed: 3), Self.bytes(way.size))
      harness.store.put(way == .put ? "put/film.mp4" : "films/film.mp4", bytes: old)
      try harness.put(new)
      let outcome = await harness.run(way.spec(harness) { $0.ifExists = ifExists })
      switch ifExists {
      case .fail: #expect(outcome.failure?.code == .destinationExists && outcome.failure?.class == .fail, "\(outcome)")
      case .skip, .replace: #expect(outcome.failure == nil, "\(outcome)")
      }
      #expect(way.uploaded(harness) == (ifExists == .replace ? new : old))
      #expect(harness.store.uploads.isEmpty)
    }
  }

  @Test("an object that is skipped has to be the expected one", arguments: [Way.put, .s3, .s3Small])
  func skipped(way: Way) async throws {
    for isExpected in [true, false] {
      try await UploadHarness.run { harness in
        let own = Self.bytes(way.size)
        let other = isExpected ? own : Self.bytes(1000, seed: 3)
        harness.store.put(way == .put ? "put/film.mp4" : "films/film.mp4", bytes: other)
        try harness.put(own)
        let outcome = await harness.run(
          way.spec(harness) {
            $0.ifExists = .skip
            $0.expect.bytes = Int64(own.count)
          })
        #expect(outcome.failure?.code == (isExpected ? nil : .destinationExists), "\(outcome)")
        if case .succeeded(_, let bytes) = outcome { #expect(bytes == Int64(own.count)) }
        #expect(way.uploaded(harness) == other)
      }
    }
  }

  @Test(
    "of two objects of one length the digest tells which one is skipped, whatever the server tells of them",
    arguments: [Way.put, .s3, .s3Small], [true, false])
  func skippedByDigest(way: Way, isTold: Bool) async throws {
    for (isExpected, isReadable) in [(true, true), (false, true), (true, false)] where isReadable || !isTold {
      try await UploadHarness.run { harness in
        let own = Self.bytes(way.size)
        var other = StoreObject(pieces: [StorePiece(bytes: isExpected ? own : Self.bytes(way.size, seed: 3))])
        if !isTold { other.etag = "\"of-parts-2\"" }
        harness.store.put(way == .put ? "put/film.mp4" : "films/film.mp4", other)
        try harness.put(own)
        harness.store.script { request in
          isReadable || ![.get, .getObject].contains(request.operation) ? [] : [.status(403)]
        }
        let outcome = await harness.run(
          way.spec(harness) {
            $0.ifExists = .skip
            $0.expect.sha256 = digest(.sha256, of: own)
          })
        if isExpected, isReadable {
          let proof: UploadOutput.Verified = way == .put ? .sha256 : isTold ? .md5 : .crc32c
          #expect(outcome.object?.verified == proof, "\(outcome)")
        } else {
          let code: TaskFailure.Code = isReadable || way == .put ? .destinationExists : .http(403)
          #expect(outcome.failure?.code == code && outcome.failure?.class == .fail, "\(outcome)")
        }
        #expect(harness.store.exchanges(way.sends).isEmpty)
      }
    }
  }

  @Test(
    "an answer that says no for good ends the upload, and nothing stays open", arguments: Way.allCases,
    [400, 401, 403, 413])
  func refused(way: Way, status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      harness.store.always(way.sends, .status(status))
      let outcome = await harness.run(way.spec(harness))
      #expect(outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.objects.isEmpty)
      #expect(way != .s3 || harness.store.uploads.isEmpty)
    }
  }

  @Test("a run that has lost its task sends and finishes nothing more", arguments: Way.allCases)
  func withoutOwnership(way: Way) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      let gate = OriginGate()
      harness.store.always(way.sends, .holdBody(after: 100_000, gate))
      let ledger = UploadRecordingLedger()
      let spec = way.spec(harness)
      let run = Task { await harness.run(spec, ledger: ledger) }
      await gate.reached()
      ledger.revoke()
      gate.open()
      #expect(await run.value == .stopped)
      #expect(way.uploaded(harness) != Self.bytes(way.size))
    }
  }
}
