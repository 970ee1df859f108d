import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Large files, which are sent to a tus server in parts.
@Suite struct UploadTusConcatenationTests {
  private static func spec(_ harness: UploadHarness) -> TaskSpec {
    TaskSpec(
      id: .random(), kind: .upload, source: UploadHarness.source, destination: "tus+\(harness.store.url("/tus"))")
  }

  @Test("a large file is sent in parts that are concatenated, also if one part is lost") func concatenated()
    async throws
  {
    for isLost in [false, true] {
      try await UploadHarness.run { harness in
        try harness.putLarge()
        harness.store.script { isLost && $0.operation == .tusPatch && $0.ordinal == 5 ? [.gone410] : [] }
        let outcome = await harness.run(Self.spec(harness))
        #expect(outcome.object?.size == UploadHarness.large && outcome.object?.remark == nil, "\(outcome)")
        #expect(harness.store.objects.count == 1)
        // The parts of the lost upload are given up, and those of the file are not needed once they are joined.
        #expect(harness.store.uploads.isEmpty)
      }
    }
  }

  @Test("after a lost answer to the concatenation the task says that there may be a second file")
  func lostConcatenation() async throws {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      harness.store.script { request in
        request.operation == .tusCreate && request["upload-concat"]?.hasPrefix("final") == true
          && request.ordinal == 3 ? [.closeAfterApplying] : []
      }
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.class == .retry, "\(first)")
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.object?.size == UploadHarness.large, "\(second)")
      #expect(second.object?.remark?.contains("second time") == true)
      #expect(harness.store.objects.count == 2)
    }
  }

  @Test("what the server has lost of a part when it is to join them is sent again") func lostBeforeJoining()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      harness.store.script { request in
        switch (request.operation, request.ordinal) {
        // The first two make the parts.
        case (.tusCreate, 3): [.status(400)]
        case (.tusHead, 1): [.offsetFalls(by: 1000)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.object?.size == UploadHarness.large, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).count == 4)
      #expect(harness.store.objects.count == 1 && harness.store.uploads.isEmpty)
    }
  }

  @Test("parts are ended only once the server says that the joined upload is whole, and it is waited for")
  func joinsSlowly() async throws {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      let asked = Lock(0)
      harness.store.script { request in
        guard request.operation == .tusHead else { return [] }
        let number = asked.withLock { count in
          count += 1
          return count
        }
        return number <= 3 ? [.header("Upload-Offset", nil)] : []
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.object?.verified == .size && outcome.object?.remark == nil, "\(outcome)")
      let first = harness.store.exchanges.firstIndex { $0.operation == .tusDelete }
      let last = harness.store.exchanges.lastIndex { $0.operation == .tusHead }
      #expect(first ?? 0 > last ?? .max)
      #expect(harness.store.uploads.isEmpty && harness.store.objects.count == 1)
    }
  }

  @Test("a server that never says that it has joined the parts keeps them, and the task says so") func neverJoins()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      harness.store.always(.tusHead, .header("Upload-Offset", nil))
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.object?.verified == UploadOutput.Verified.none, "\(outcome)")
      #expect(outcome.object?.remark?.contains("joined the parts") == true)
      #expect(harness.store.exchanges(.tusDelete).isEmpty)
    }
  }

  @Test("a run after a crash between joining and its record's end joins nothing a second time")
  func crashAfterJoining() async throws {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      // The parts are gone, and the worker dies before it has told.
      harness.store.script { $0.operation == .tusHead && $0.ordinal == 1 ? [.status(500)] : [] }
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.class == .retry, "\(first)")
      for upload in harness.store.uploads.keys { harness.store.expire(upload) }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.size == UploadHarness.large && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.objects.count == 1)
      #expect(harness.store.exchanges(.tusCreate).count == 3)
    }
  }

  @Test("a failure of one part asks about this part alone") func asksAboutOne() async throws {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      harness.store.script { $0.operation == .tusPatch && $0.ordinal == 3 ? [.status(500)] : [] }
      #expect(await harness.run(Self.spec(harness)).failure == nil)
      let failed = harness.store.exchanges(.tusPatch).first { $0.request.ordinal == 3 }?.request.path
      let heads = harness.store.exchanges(.tusHead).map(\.request.path)
      // The last is that of the joined upload.
      #expect(heads.dropLast() == [failed ?? ""])
    }
  }

  @Test("an offset that no number can hold ends the upload, and not the worker") func impossibleOffset() async throws {
    try await UploadHarness.run { harness in
      try harness.putLarge()
      let first = Lock<String?>(nil)
      harness.store.script { request in
        guard request.operation == .tusPatch else { return [] }
        let isFirst = first.withLock { path in
          path = path ?? request.path
          return path == request.path
        }
        return isFirst ? [] : [.header("Upload-Offset", "\(Int64.max)")]
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure?.code == .uploadAhead, "\(outcome)")
    }
  }
}

extension UploadHarness {
  fileprivate static let large: Int64 = 129 << 20

  /// A large file, nearly all of which are zeros.
  func putLarge() throws {
    try put(Array("a large file".utf8))
    guard truncate(sourcePath, off_t(Self.large)) == 0 else { throw SystemError.last("truncate") }
  }
}
