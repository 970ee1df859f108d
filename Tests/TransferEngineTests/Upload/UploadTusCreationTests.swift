import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Files that are sent with the creation of their uploads, where a task asks for that.
@Suite struct UploadTusCreationTests {
  private static let size: Int64 = 100_000
  private static let small = OriginContent(seed: 5).bytes(0..<size)

  private static func spec(_ harness: UploadHarness, isAsked: Bool = true) -> TaskSpec {
    var spec = UploadTusTests.spec(harness)
    if isAsked { spec.parameters = Array(#"{"creationWithUpload":true}"#.utf8) }
    return spec
  }

  private static func expectOnce(_ harness: UploadHarness, at location: SourceLocation = #_sourceLocation) {
    let isThere = harness.store.uploads.isEmpty && harness.store.objects.values.map(\.bytes) == [small]
    #expect(isThere, "\(harness.store.objects.count) files", sourceLocation: location)
  }

  private static func replace(_ harness: UploadHarness, _ bytes: [UInt8]) throws {
    unlink(harness.sourcePath)
    try harness.put(bytes)
  }

  /// The bytes of all creations.
  private static func created(_ harness: UploadHarness) -> [Int64] {
    harness.store.exchanges(.tusCreate).map { $0.request["content-length"].flatMap { Int64($0) } ?? 0 }
  }

  @Test("a file that one request carries needs no other one", arguments: [true, false])
  func whole(isHashed: Bool) async throws {
    var options = StoreOptions()
    if !isHashed { options.tusChecksums = [] }
    try await UploadHarness.run(options: options) { harness in
      try harness.put(Self.small)
      let ledger = UploadRecordingLedger()
      let known = Lock<UploadCheckpoint?>(nil)
      harness.store.script { request in
        if request.operation == .tusCreate { known.withLock { $0 = ledger.last } }
        return []
      }
      let outcome = await harness.run(Self.spec(harness), ledger: ledger)
      #expect(outcome.object?.verified == .size && outcome.object?.remark == nil, "\(outcome)")
      #expect(Self.created(harness) == [Self.size] && harness.store.exchanges(.tusPatch).isEmpty)
      let request = harness.store.exchanges(.tusCreate).first?.request
      #expect((request?["upload-checksum"] != nil) == isHashed)
      let recorded = known.withLock { $0 }
      #expect(recorded?.isPublishing == true, "the next run must know that the file may be there")
      #expect(recorded?.envelope.stage == nil, "nothing of it is sent yet")
      #expect(ledger.progress.last == Self.size)
      Self.expectOnce(harness)
    }
  }

  @Test("a file is not sent so if nobody asks, it is empty or too long, has a limit, or the server does not offer it")
  func others() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      #expect(await harness.run(Self.spec(harness, isAsked: false)).failure == nil)
      var spec = Self.spec(harness)
      spec.parameters = Array(#"{"creationWithUpload":true,"partSize":65536}"#.utf8)
      #expect(await harness.run(spec).failure == nil)
      try Self.replace(harness, [])
      #expect(await harness.run(Self.spec(harness)).failure == nil)
      try Self.replace(harness, Self.small)
      harness.store.options.tusExtensions.removeAll { $0 == "creation-with-upload" }
      #expect(await harness.run(Self.spec(harness)).failure == nil)
      harness.store.options.tusExtensions.append("creation-with-upload")
      spec = Self.spec(harness)
      spec.rate = 10 << 20
      #expect(await harness.run(spec).failure == nil)
      #expect(Self.created(harness) == [0, 0, 0, 0, 0])
      #expect(harness.store.objects.count == 5 && harness.store.uploads.isEmpty)
    }
  }

  @Test("a server that keeps a part of it gets the rest, in another run too, and anew if it loses that")
  func part() async throws {
    for ends in [false, true] {
      for isLost in [false, true] where ends || !isLost {
        try await UploadHarness.run { harness in
          try harness.put(Self.small)
          harness.store.script { request in
            switch request.operation {
            case .tusCreate where request.ordinal == 1: [.offsetFalls(by: 30_000)]
            case .tusPatch where ends && request.ordinal == 1: [.closeAfter(bytes: 10_000)]
            case .tusHead where ends && request.ordinal <= 3: [.status(isLost ? 404 : 503)]
            default: []
            }
          }
          let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
          var outcome = await harness.run(spec, ledger: ledger)
          if outcome.failure?.class == .retry { outcome = await harness.run(spec, from: ledger.last, ledger: ledger) }
          #expect(outcome.failure == nil, "\(outcome)")
          #expect(harness.store.objects.values.contains { $0.bytes == Self.small }, "\(ends) \(isLost)")
          let patched = harness.store.exchanges(.tusPatch).last?.bodyLength
          #expect(isLost || patched == 30_000 && Self.created(harness) == [Self.size])
        }
      }
    }
  }

  @Test("after a lost answer the file is sent once more in the other way, and the task says that it may be there twice")
  func lostAnswer() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script { $0.operation == .tusCreate && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      #expect(ledger.last?.isPublishing == true && ledger.last?.session == nil)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.remark?.contains("a second time") == true, "\(outcome)")
      #expect(Self.created(harness) == [Self.size, 0])
      #expect(harness.store.objects.values.map(\.bytes) == [Self.small, Self.small])
    }
  }

  @Test(
    "a creation that is refused before the bytes has made nothing: the next one brings them again",
    arguments: [423, 429])
  func refused(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script { $0.operation == .tusCreate && $0.ordinal == 1 ? [.status(status)] : [] }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.code == .http(status) && first.failure?.class != .fail, "\(first)")
      #expect(ledger.last?.isPublishing == false && ledger.last?.intendedAt == 0)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(Self.created(harness) == [Self.size, Self.size])
      Self.expectOnce(harness)
    }
  }

  @Test("where the bytes of a creation are refused, an upload may be left") func refusedBytes() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script { $0.operation == .tusCreate && $0.ordinal == 1 ? [.status(460)] : [] }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.remark?.contains("not confirmed") == true, "\(outcome)")
      #expect(Self.created(harness) == [Self.size, 0])
      Self.expectOnce(harness)
    }
  }

  @Test("what was lost with a cancel is not sent so again, and told") func canceled() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script { $0.operation == .tusCreate && $0.ordinal == 1 ? [.status(503)] : [] }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger(beginsAnew: true))
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.remark?.contains("a second time") == true, "\(outcome)")
      #expect(Self.created(harness) == [0, 0])
      let other = await harness.run(
        Self.spec(harness, isAsked: false), ledger: UploadRecordingLedger(beginsAnew: true))
      #expect(other.object != nil && other.object?.remark == nil, "\(other)")
    }
  }

  @Test("what a server had, lost and lets expire is not called done") func lostBytes() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      let spec = Self.spec(harness)
      harness.store.script {
        $0.operation == .tusCreate ? [.offsetFalls(by: Self.size), .header("Upload-Offset", "\(Self.size)")] : []
      }
      let first = UploadRecordingLedger { if $0.done.count == Self.size { throw TestFleetError("no store") } }
      _ = await harness.run(spec, ledger: first)
      #expect(first.last?.isPublishing == true && first.last?.done.isEmpty == true)
      harness.store.always(.tusPatch, .status(503))
      let second = UploadRecordingLedger()
      let failed = await harness.run(spec, from: first.last, ledger: second)
      #expect(failed.failure != nil && second.last?.isPublishing == false, "\(failed)")
      harness.store.script {
        $0.operation == .tusHead && $0.target.hasSuffix(Self.name(of: second)) ? [.status(404)] : []
      }
      let outcome = await harness.run(spec, from: second.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects.values.map(\.bytes) == [Self.small])
    }
  }

  /// The last word of the URL of an upload.
  private static func name(of ledger: UploadRecordingLedger) -> String {
    let text = String(decoding: ledger.last?.session ?? [], as: UTF8.self)
    return text.split(separator: "\"").first { $0.hasPrefix("http") }?.split(separator: "/").last.map(String.init) ?? ""
  }

  @Test("what a server claims to have is not believed if it cannot have it", arguments: ["-1", "100001", "all"])
  func claims(offset: String) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script { request in
        switch request.operation {
        case .tusCreate: [.offsetFalls(by: Self.size), .header("Upload-Offset", offset)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectOnce(harness)
    }
  }

  @Test("a server that claims all and has none is found out, and gets the file") func claimsAll() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      harness.store.script {
        $0.operation == .tusCreate ? [.offsetFalls(by: Self.size), .header("Upload-Offset", "\(Self.size)")] : []
      }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.code == .sizeMismatch && first.failure?.class == .retry, "\(first)")
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectOnce(harness)
    }
  }

  @Test(
    "a run that ends after the creation is followed by one that does not send the file again", arguments: [false, true])
  func followed(isForgotten: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      let spec = Self.spec(harness)
      let ledger = UploadRecordingLedger { checkpoint in
        // The worker dies before it looks at what is there.
        if checkpoint.done.count == Self.size { throw TestFleetError("no store") }
      }
      _ = await harness.run(spec, ledger: ledger)
      #expect(ledger.last?.session != nil && ledger.last?.isPublishing == true)
      if isForgotten { harness.store.always(.tusHead, .status(404)) }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect((outcome.object?.remark != nil) == isForgotten, "\(outcome)")
      #expect(Self.created(harness).count == 1 && harness.store.exchanges(.tusPatch).isEmpty)
      Self.expectOnce(harness)
    }
  }

  @Test("a file whose creation is answered after the run was stopped is taken away") func stopped() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.small)
      let gate = OriginGate()
      harness.store.always(.tusCreate, .holdAnswer(gate))
      let ledger = UploadRecordingLedger()
      await harness.stop(Self.spec(harness), at: gate, ledger: ledger)
      try await eventually("nothing is left") {
        harness.store.exchanges(.tusDelete).count == 1 && harness.store.objects.isEmpty
      }
      #expect(ledger.last?.isPublishing == true)
    }
  }

  @Test("a source that changes while it is sent so is sent anew") func changes() async throws {
    try await UploadHarness.run { harness in
      try harness.put(OriginContent(seed: 9).bytes(0..<Self.size))
      harness.store.script { request in
        if request.operation == .tusOptions, request.ordinal == 2 { try? Self.replace(harness, Self.small) }
        return []
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(Self.created(harness) == [Self.size])
      Self.expectOnce(harness)
    }
  }
}
