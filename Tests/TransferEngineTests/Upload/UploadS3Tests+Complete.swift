import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// The end of an upload.
extension UploadS3Tests {
  @Test("an end whose answer is lost or damaged is found out by a look, and not repeated")
  func lostComplete() async throws {
    for fault in [StoreFault.closeAfterApplying, .cutHead, .truncatedXML] {
      try await upload(script: { $0.operation == .completeUpload ? [fault] : [] }).run { harness, outcome in
        #expect(outcome.object?.verified == .crc32c, "\(outcome)")
        #expect(harness.store.exchanges(.completeUpload).count == 1)
        Self.expectThere(harness)
      }
    }
  }

  @Test(
    "the run after a lost answer to the end finds the object, and sends nothing", arguments: [small, size],
    [IfExists.replace, .fail])
  func foundAfterwards(size: Int, ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(size)
      try harness.put(bytes)
      let (spec, ledger) = (Self.spec { $0.ifExists = ifExists }, UploadRecordingLedger())
      if ifExists == .fail { S3Conditions.learn(.honoured, of: "\(harness.store.url())/films") }
      let isLost = Lock(false)
      harness.store.script { request in
        let operation = request.operation
        if operation == .completeUpload || operation == .putObject { isLost.withLock { $0 = true } }
        return isLost.withLock { $0 } ? [.closeAfterApplying] : []
      }
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let before = harness.store.bytesReceived
      harness.store.script { _ in [] }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      #expect(harness.store.bytesReceived == before)
      Self.expectThere(harness, bytes)
    }
  }

  @Test(
    "what a canceled run has made of a source that was replaced by one of the same length is replaced by the next run",
    arguments: [small, size], [IfExists.fail, .skip])
  func canceledAtTheEnd(size: Int, ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      let (spec, gate) = (Self.spec { $0.ifExists = ifExists }, OriginGate())
      S3Conditions.learn(.proven, of: "\(harness.store.url())/films")
      try harness.put(Self.bytes(size))
      harness.store.script { [.putObject, .completeUpload].contains($0.operation) ? [.holdAnswer(gate)] : [] }
      await harness.stop(spec, at: gate)
      Self.expectThere(harness, Self.bytes(size))
      harness.store.script { _ in [] }
      let other = OriginContent(seed: 9).bytes(0..<Int64(size))
      try harness.put(other)
      let outcome = await harness.run(spec)
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      Self.expectThere(harness, other)
    }
  }

  @Test("a 412 that a file's own try before has caused is no failure") func ownIsInTheWay() async throws {
    let (spec, bytes) = (Self.spec { _ in }, Self.bytes(Self.small))
    // A kept connection on which the answer is lost: libcurl repeats the request by itself.
    try await upload(
      bytes, spec: spec,
      script: { $0.operation == .putObject && $0["if-match"] == nil && $0.ordinal == 2 ? [.closeAfterApplying] : [] }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).last?.status == 412)
      Self.expectThere(harness, bytes)
    }
  }

  @Test(
    "the object of an earlier version is replaced also by a run that goes on, and nothing is sent twice",
    arguments: [IfExists.fail, .skip])
  func replacesFormer(ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      let (spec, ledger) = (Self.spec { $0.ifExists = ifExists }, UploadRecordingLedger())
      try harness.put(Self.bytes())
      #expect(await harness.run(spec, ledger: ledger).failure == nil)
      let other = OriginContent(seed: 9).bytes(0..<Int64(Self.size))
      unlink(harness.sourcePath)
      try harness.put(other)
      harness.store.always(.completeUpload, .status(503, headers: [("Retry-After", "60")]))
      let finished = harness.store.exchanges(.completeUpload).count
      #expect(await harness.run(spec, from: ledger.last, ledger: ledger).failure?.class == .retry)
      // Who asks for a minute is not asked again within the run.
      #expect(harness.store.exchanges(.completeUpload).count == finished + 1)
      Self.expectSent(harness, 2)
      harness.store.script { _ in [] }
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.object?.verified == .crc32c && outcome.object?.remark == nil, "\(outcome)")
      Self.expectSent(harness, 2)
      Self.expectThere(harness, other)
    }
  }

  @Test(
    "what came in the place of an earlier version during the upload is kept, whether or not the store looks",
    arguments: [IfExists.fail, .skip], [true, false])
  func formerIsReplaced(ifExists: IfExists, ignores: Bool) async throws {
    for other: [UInt8]? in [[1, 2, 3], nil] {
      try await UploadHarness.run { harness in
        let spec = Self.spec { $0.ifExists = ifExists }
        S3Conditions.learn(ignores ? .ignored : .honoured, of: "\(harness.store.url())/films")
        try harness.put(OriginContent(seed: 9).bytes(0..<Int64(Self.size)))
        #expect(await harness.run(spec).failure == nil)
        unlink(harness.sourcePath)
        try harness.put(Self.bytes())
        let sent = harness.store.exchanges(.uploadPart).count
        harness.store.script { [store = harness.store] request in
          if let other, request.operation == .uploadPart, request.ordinal == sent + 2 {
            store.put("films/film.mp4", bytes: other)
          }
          return ignores ? [.ignoreIfNoneMatch] : []
        }
        let outcome = await harness.run(spec)
        if let other {
          let code = ifExists == .fail ? TaskFailure.Code.destinationExists : nil
          #expect(outcome.failure?.code == code, "\(outcome)")
          Self.expectThere(harness, other)
        } else {
          #expect((outcome.object?.remark?.contains("If-Match") == true) == ignores, "\(outcome)")
          Self.expectThere(harness)
        }
      }
    }
  }

  /// So many uploads have sent all their parts once.
  private static func expectSent(_ harness: UploadHarness, _ uploads: Int) {
    #expect(harness.store.exchanges(.createUpload).count == uploads)
    #expect(harness.store.exchanges(.uploadPart).count == 4 * uploads)
  }

  @Test("an end with status 200 and an error inside is no success") func errorInside() async throws {
    let spec = Self.spec()
    try await upload(
      spec: spec, script: { $0.operation == .completeUpload && $0.ordinal == 1 ? [.lieComplete200WithError()] : [] }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let ledger = UploadRecordingLedger()
      harness.store.always(.completeUpload, .lieComplete200WithError())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let objects = harness.store.objects.count
      #expect(objects == 0)
      harness.store.script { _ in [] }
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      #expect(harness.store.exchanges(.uploadPart).count == 4)
      Self.expectThere(harness)
    }
  }

  @Test("an object that is taken away or replaced right after its end is not sent again, and the output says so")
  func takenAtOnce() async throws {
    for other: [UInt8]? in [nil, [1, 2, 3]] {
      for ifExists in [IfExists.fail, .replace] {
        try await UploadHarness.run { harness in
          try harness.put(Self.bytes())
          let isTaken = Lock(false)
          harness.store.script { [store = harness.store] request in
            guard request.operation == .headObject, store.objects["films/film.mp4"] != nil,
              !isTaken.withLock({ $0 })
            else { return [] }
            isTaken.withLock { $0 = true }
            if let other { store.put("films/film.mp4", bytes: other) } else { store.delete("films/film.mp4") }
            return []
          }
          let outcome = await harness.run(Self.spec { $0.ifExists = ifExists })
          #expect(outcome.object?.verified == .crc32c && outcome.object?.etag != nil, "\(outcome)")
          #expect(outcome.object?.remark?.contains("replaced or taken away") == true)
          #expect(harness.store.exchanges(.createUpload).count { $0.wasApplied } == 1)
          #expect(harness.store.exchanges(.uploadPart).count == 4)
          #expect(harness.store.objects["films/film.mp4"]?.bytes == other)
        }
      }
    }
  }

  @Test(
    "an object of one request that is taken away or replaced at once is not made again, and the output says so",
    arguments: [(nil, true), (3, false), (3, true), (small, false), (small, true)] as [(Int?, Bool)])
  func takenAtOnceSmall(other: Int?, isCopy: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      harness.store.put("films/source.mp4", bytes: Self.bytes(Self.small))
      // Of one who does not say whose it is.
      let bytes = other.map { OriginContent(seed: 9).bytes(0..<Int64($0)) }
      harness.store.script { [store = harness.store] request in
        if request.operation == .headObject {
          if let bytes { store.put("films/film.mp4", bytes: bytes) } else { store.delete("films/film.mp4") }
        }
        return request.operation == .putObject
          ? [.header("ETag", "\"of-an-encrypted-object\""), .header("x-amz-checksum-crc32c", nil)] : []
      }
      let outcome = await harness.run(isCopy ? Self.copy { $0.ifExists = .replace } : Self.spec())
      #expect(outcome.object?.etag != nil && outcome.object?.verified == UploadOutput.Verified.none, "\(outcome)")
      #expect(outcome.object?.remark?.contains("taken away") == true)
      #expect(harness.store.exchanges(isCopy ? .copyObject : .putObject).count == 1)
      #expect(harness.store.objects["films/film.mp4"]?.bytes == bytes)
    }
  }

  @Test("an end that is confirmed although nothing is there is said") func completeButMissing() async throws {
    try await upload(script: { $0.operation == .completeUpload ? [.completeButMissing] : [] }).run { harness, outcome in
      #expect(outcome.object?.remark?.contains("does not show it") == true, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 1)
    }
  }

  @Test("a lost answer to the end where nobody may look is no reason for another upload, unless it may replace")
  func lostCompleteUnseen() async throws {
    for (ifExists, answer) in [
      (IfExists.fail, StoreFault.closeAfterApplying), (.replace, .closeAfterApplying),
      (.fail, .statusAfterApplying(504)),
    ] {
      let isLost = Lock(false)
      try await upload(
        spec: Self.spec { $0.ifExists = ifExists },
        script: { request in
          if request.operation == .headObject { return [.status(403)] }
          guard request.operation == .completeUpload, request["if-match"] == nil, !isLost.withLock({ $0 }) else {
            return []
          }
          isLost.withLock { $0 = true }
          return [answer]
        }
      ).run { harness, outcome in
        #expect(outcome.failure?.code == (ifExists == .fail ? .answerLost : nil), "\(answer): \(outcome)")
        #expect(harness.store.exchanges(.uploadPart).count == (ifExists == .fail ? 4 : 8))
        Self.expectThere(harness)
      }
    }
  }

  @Test("an object that is in the way of a lost end is not called another's where nobody may look")
  func lostCompleteRefused() async throws {
    for (ifExists, isLost) in [(IfExists.fail, true), (.skip, true), (.fail, false)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        S3Conditions.learn(.honoured, of: "\(harness.store.url())/films")
        harness.store.script { request in
          switch request.operation {
          case .headObject: [.status(403)]
          case .completeUpload where isLost && request.ordinal == 1: [.closeAfterApplying]
          case .completeUpload: [.preconditionFailed412]
          default: []
          }
        }
        let outcome = await harness.run(Self.spec { $0.ifExists = ifExists })
        #expect(outcome.failure?.code == (isLost ? .answerLost : .destinationExists), "\(outcome)")
        #expect(harness.store.exchanges(.createUpload).count == 1)
      }
    }
  }

  @Test(
    "what is in the way of a small file is called another's only if it is, or if a look could tell",
    arguments: [0, 1, small])
  func lostAnswerUnseen(size: Int) async throws {
    let bytes = Self.bytes(size)
    // A kept connection, on which libcurl repeats the request by itself, or a try of the run's own.
    for (fault, code) in [
      (StoreFault.closeAfterApplying, TaskFailure.Code.answerLost), (.statusAfterApplying(500), .answerLost),
      (.status(503), .destinationExists),
    ] {
      try await UploadHarness.run { harness in
        try harness.put(bytes)
        if code == .destinationExists { harness.store.put("films/film.mp4", bytes: bytes) }
        let (spec, ledger, isLost) = (Self.spec { _ in }, UploadRecordingLedger(), Lock(false))
        harness.store.script { request in
          if request.operation == .headObject { return [.status(403)] }
          guard request.operation == .putObject, request["if-match"] == nil, !isLost.withLock({ $0 }) else { return [] }
          isLost.withLock { $0 = true }
          return [fault]
        }
        // A user's `retry` tells no more.
        for checkpoint in [{ nil }, { ledger.last }] as [() -> UploadCheckpoint?] {
          let outcome = await harness.run(spec, from: checkpoint(), ledger: ledger)
          #expect(outcome.failure?.code == code && outcome.failure?.class == .fail, "\(fault): \(outcome)")
        }
        Self.expectThere(harness, bytes)
      }
    }
  }

  @Test("a credential that may only write sends nothing twice after a worker died at the end, unless it may replace")
  func diedAtTheEndUnseen() async throws {
    for ifExists in [IfExists.fail, .replace] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        S3Conditions.learn(.honoured, of: "\(harness.store.url())/films")
        let (spec, ledger, gate) = (Self.spec { $0.ifExists = ifExists }, UploadRecordingLedger(), OriginGate())
        harness.store.script { request in
          switch request.operation {
          case .headObject, .listParts: [.status(403, body: "<Error><Code>AccessDenied</Code></Error>")]
          case .completeUpload where request.ordinal == 1: [.holdAnswer(gate)]
          default: []
          }
        }
        let run = Task { await harness.run(spec, ledger: ledger) }
        await gate.reached()
        ledger.revoke()
        run.cancel()
        _ = await run.value
        gate.open()
        let next = UploadRecordingLedger()
        let outcome = await harness.run(spec, from: ledger.last, ledger: next)
        #expect(outcome.failure?.code == (ifExists == .fail ? .answerLost : nil), "\(outcome)")
        #expect(next.last?.isPublishing == true)
        #expect(harness.store.exchanges(.createUpload).count == (ifExists == .fail ? 1 : 2))
        Self.expectThere(harness)
      }
    }
  }

  @Test("an object that is shorter or other than what was sent is no success") func damagedObject() async throws {
    for fault in [StoreFault.truncateObject(by: 1), .wrongChecksumEcho] {
      try await upload(script: { $0.operation == .completeUpload ? [fault] : [] }).run { _, outcome in
        #expect(outcome.failure?.class == .retry, "\(outcome)")
      }
    }
  }

  /// A HEAD of an object whose upload a worker of an earlier version began.
  private static let former = StoreFault.header("x-amz-meta-reelhaul-version", nil)

  @Test("an upload that a worker of an earlier version began is finished, and sent once", arguments: [false, true])
  func begunByFormer(isLost: Bool) async throws {
    try await upload(
      spec: Self.spec { _ in },
      script: { request in
        switch request.operation {
        case .completeUpload where isLost && request["if-match"] == nil: [.closeAfterApplying]
        case .headObject: [Self.former] + Self.silentHeads[0]
        default: []
        }
      }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == .crc32c && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.getObject).isEmpty != isLost)
      #expect(harness.store.exchanges(.createUpload).count == 1)
      #expect(harness.store.exchanges(.completeUpload).count { $0.wasApplied } == 1)
      Self.expectThere(harness)
    }
  }

  @Test(
    "an object that does not say of which version it is passes for this one only by its bytes",
    arguments: [small, size], [IfExists.fail, .skip])
  func madeByFormer(size: Int, ifExists: IfExists) async throws {
    for isSame in [true, false] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes(size))
        let spec = Self.spec { $0.ifExists = ifExists }
        let bytes = isSame ? Self.bytes(size) : OriginContent(seed: 9).bytes(0..<Int64(size))
        var there = StoreObject(pieces: [StorePiece(bytes: bytes)])
        there.etag = "\"of-an-encrypted-object\""
        there.metadata = ["reelhaul-task": "\(spec.id)", "reelhaul-generation": "0"]
        harness.store.put("films/film.mp4", there)
        let outcome = await harness.run(spec)
        #expect(outcome.object?.verified == .crc32c, "\(outcome)")
        let sent = harness.store.exchanges(.putObject) + harness.store.exchanges(.uploadPart)
        #expect(sent.contains(where: \.wasApplied) != isSame)
        Self.expectThere(harness, Self.bytes(size))
      }
    }
  }

  /// A HEAD that tells nothing of the bytes, or something else.
  private static let silentHeads: [[StoreFault]] = [
    [.header("x-amz-checksum-crc32c", nil)], [.header("x-amz-checksum-crc32c", "AAAAAA==")],
  ]

  @Test(
    "an object that the store has damaged is made anew by the next run", arguments: [0, 1], [IfExists.fail, .replace])
  func damagedOnce(head: Int, ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      S3Conditions.learn(.honoured, of: "\(harness.store.url())/films")
      let (spec, ledger) = (Self.spec { $0.ifExists = ifExists }, UploadRecordingLedger())
      harness.store.script { request in
        switch request.operation {
        case .completeUpload where request.ordinal == 1: [.corruptBit, .wrongChecksumEcho]
        case .headObject: Self.silentHeads[head]
        default: []
        }
      }
      #expect(await harness.run(spec, ledger: ledger).failure?.code == .digestMismatch)
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 2)
      Self.expectThere(harness)
    }
  }

  @Test(
    "an object that the store has damaged is made anew also if the task was canceled",
    arguments: [IfExists.fail, .skip])
  func damagedAndCanceled(ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      S3Conditions.learn(.honoured, of: "\(harness.store.url())/films")
      let spec = Self.spec { $0.ifExists = ifExists }
      harness.store.script { request in
        switch request.operation {
        case .completeUpload where request.ordinal == 1: [.corruptBit, .wrongChecksumEcho]
        // Then the damaged one is looked at once more.
        case .completeUpload where request.ordinal == 2: [.status(500)]
        case .headObject: Self.silentHeads[0]
        default: []
        }
      }
      #expect(await harness.run(spec).failure?.code == .digestMismatch)
      // A task that was canceled has no checkpoint.
      let outcome = await harness.run(spec)
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 2)
      Self.expectThere(harness)
      #expect(await harness.run(spec).object?.verified == .crc32c)
      #expect(harness.store.exchanges(.createUpload).count == 2)
    }
  }

  @Test("an object of which a look tells another checksum is read, and is no failure if it has the right bytes")
  func wrongWord() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      let isLost = Lock(true)
      harness.store.script { request in
        if request.operation == .completeUpload { return isLost.withLock { $0 } ? [.closeAfterApplying] : [] }
        guard request.operation == .headObject else { return [] }
        return isLost.withLock { $0 } ? [.status(503)] : Self.silentHeads[1]
      }
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      isLost.withLock { $0 = false }
      for checkpoint in [ledger.last, nil] {
        let outcome = await harness.run(spec, from: checkpoint)
        #expect(outcome.object?.verified == .crc32c, "\(outcome)")
        #expect(harness.store.exchanges(.createUpload).count == (checkpoint == nil ? 2 : 1))
        Self.expectThere(harness)
      }
      // A damage that only this look tells.
      harness.store.script { request in
        if request.operation == .completeUpload { return [.corruptBit] }
        return request.operation == .headObject ? Self.silentHeads[1] : []
      }
      #expect(await harness.run(spec).failure?.code == .digestMismatch)
    }
  }

  @Test("an upload that the store has forgotten is sent anew", arguments: [StoreOperation.uploadPart, .completeUpload])
  func expired(operation: StoreOperation) async throws {
    try await upload(script: { $0.operation == operation && $0.ordinal == 2 ? [.noSuchUpload] : [] }).run {
      harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      harness.store.always(.completeUpload, .status(500))
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      for id in harness.store.uploads.keys { harness.store.expire(id) }
      harness.store.script { _ in [] }
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      Self.expectThere(harness)
    }
  }

  @Test("after a conflict at the end all is sent anew only if the upload is gone", arguments: [false, true])
  func conflict(uploadIsGone: Bool) async throws {
    try await upload(
      script: {
        $0.operation == .completeUpload && $0.ordinal == 1 ? [.conflict409OnComplete(uploadIsGone: uploadIsGone)] : []
      }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == (uploadIsGone ? 2 : 1))
      Self.expectThere(harness)
    }
  }

  // MARK: The store as a whole
}
