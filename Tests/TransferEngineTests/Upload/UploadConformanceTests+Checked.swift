import Glibc
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// A source may have other bytes although nothing tells that it has changed. If a digest is expected, they never arrive.
extension UploadConformanceTests {
  /// How the bytes are sent.
  enum Sending: CaseIterable, CustomTestStringConvertible {
    case put, post, tus, tusWithChecksums, s3, s3Small

    var way: Way {
      switch self {
      case .put, .post: .put
      case .tus, .tusWithChecksums: .tus
      case .s3: .s3
      case .s3Small: .s3Small
      }
    }

    var sends: StoreOperation { self == .post ? .post : way.sends }
    var testDescription: String { "\(self)" }
  }

  enum Moment: CaseIterable {
    case afterTheCheck, whileItIsSent, betweenRuns
  }

  private static func spec(
    _ sending: Sending, _ harness: UploadHarness, _ origin: OriginServer, _ file: OriginFile
  ) -> TaskSpec {
    sending.way.spec(harness) { spec in
      spec.kind = .copy
      spec.source = origin.url("/film.mp4")
      spec.expect.sha256 = file.content.sha256(size: file.size)
      // One part is read after the other.
      spec.connections = 1
      spec.ifExists = .replace
      spec.credential = nil
      let parameters =
        switch sending {
        case .put, .tusWithChecksums: "{}"
        case .post: #"{"method":"POST"}"#
        case .tus: #"{"checksum":"none"}"#
        case .s3, .s3Small: #"{"toCredential":"s3"}"#
        }
      spec.parameters = Array(parameters.utf8)
    }
  }

  @Test("a source that is written in place, and given its former time, is another version", arguments: [Way.s3, .tus])
  func formerTime(way: Way) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(way.size))
      let spec = way.spec(harness)
      let ledger = await harness.interrupt(spec, way.sends, after: 500_000)
      var status = stat()
      #expect(stat(harness.sourcePath, &status) == 0)
      let other = Self.bytes(way.size, seed: 8)
      let file = try FileDescriptor.open(harness.sourcePath, O_WRONLY)
      try other.withUnsafeBytes { try file.write($0, at: 0) }
      var times = [status.st_atim, status.st_mtim]
      #expect(utimensat(AT_FDCWD, harness.sourcePath, &times, 0) == 0)
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects.values.contains { $0.bytes == other } || way.uploaded(harness) == other)
      #expect(ledger.last?.generation == 1)
    }
  }

  @Test(
    "a source that changes under its validator is not uploaded", arguments: Sending.allCases, Moment.allCases)
  func changedUnderItsValidator(sending: Sending, moment: Moment) async throws {
    // The only request has all its bytes before it is sent.
    if sending == .s3Small, moment == .whileItIsSent { return }
    let origin = try OriginServer()
    defer { origin.close() }
    let file = OriginFile(seed: 7, size: Int64(sending.way.size))
    let other = file.with { $0.content = OriginContent(seed: 8) }
    origin.serve("/film.mp4", file)
    try await UploadHarness.run { harness in
      var spec = Self.spec(sending, harness, origin, file)
      // Then it is looked for before it is sent.
      if moment == .afterTheCheck { spec.ifExists = .skip }
      let (gate, ledger) = (OriginGate(), UploadRecordingLedger())
      harness.store.script { request in
        switch moment {
        case .afterTheCheck where request.operation != .tusOptions: origin.serve("/film.mp4", other)
        case .whileItIsSent where request.operation == sending.sends: origin.serve("/film.mp4", other)
        case .betweenRuns where request.operation == sending.sends: return [.holdBody(after: 500_000, gate)]
        default: break
        }
        return []
      }
      if moment == .afterTheCheck, sending == .post {
        // Nothing is asked before.
        let checks = 1 + (file.size + 4 << 20 - 1) / 4 << 20
        origin.script("/film.mp4") { [origin] request in
          if request.number == checks { origin.serve("/film.mp4", other) }
          return []
        }
      }
      if moment == .betweenRuns {
        await harness.stop(spec, at: gate, ledger: ledger)
        origin.serve("/film.mp4", other)
        harness.store.script { _ in [] }
      }
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure?.code == .digestMismatch && outcome.failure?.class == .fail, "\(outcome)")
      let isAbsent = sending.way.uploaded(harness) == nil
      #expect(isAbsent)
      #expect(harness.store.uploads.isEmpty, "it is given up")
    }
  }

  @Test(
    "a source that gives other bytes for a moment arrives as it was checked",
    arguments: Sending.allCases.filter { $0 != .s3Small })
  func otherForAMoment(sending: Sending) async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    let file = OriginFile(seed: 7, size: Int64(sending.way.size))
    let other = file.with { $0.content = OriginContent(seed: 8) }
    origin.serve("/film.mp4", file)
    try await UploadHarness.run { harness in
      let (spec, ledger, isFirst) = (Self.spec(sending, harness, origin, file), UploadRecordingLedger(), Lock(true))
      // Each read ends it.
      origin.script("/film.mp4") { [origin] _ in
        origin.serve("/film.mp4", file)
        return []
      }
      harness.store.script { request in
        let changes = isFirst.withLock { isFirst in
          defer { if request.operation == sending.sends { isFirst = false } }
          return isFirst && request.operation == sending.sends
        }
        if changes { origin.serve("/film.mp4", other) }
        return []
      }
      let outcome = await harness.run(spec, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      let isThere = sending.way.uploaded(harness) == file.content.bytes(0..<file.size)
      #expect(isThere)
      #expect(ledger.last?.generation == 0)
    }
  }

  @Test("a run that goes on with an upload does not check its source again", arguments: [Sending.tus, .s3])
  func checkedOnce(sending: Sending) async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    let file = OriginFile(seed: 7, size: Int64(sending.way.size))
    origin.serve("/film.mp4", file)
    try await UploadHarness.run { harness in
      let (spec, ledger, gate) = (Self.spec(sending, harness, origin, file), UploadRecordingLedger(), OriginGate())
      harness.store.script { request in
        let isThere = harness.store.exchanges(sending.sends).count { $0.isFinished } > 0
        return request.operation == sending.sends && isThere ? [.holdBody(after: 500_000, gate)] : []
      }
      await harness.stop(spec, at: gate, ledger: ledger)
      harness.store.script { _ in [] }
      let before = origin.exchanges("/film.mp4").count
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      let isThere = sending.way.uploaded(harness) == file.content.bytes(0..<file.size)
      #expect(isThere)
      let sent = origin.exchanges("/film.mp4").dropFirst(before).reduce(0) { $0 + $1.sent.count }
      // What tells its version, and blocks that are read to compare one byte of them.
      #expect(sent < file.size + 2 << 20)
    }
  }

  @Test("a file that is changed through a mapping is not uploaded", arguments: Way.allCases)
  func changedThroughAMapping(way: Way) async throws {
    try await UploadHarness.run { harness in
      let bytes = OriginContent(seed: 7).bytes(0..<Int64(way.size))
      try harness.put(bytes)
      let file = open(harness.sourcePath, O_RDWR)
      defer { close(file) }
      let memory = try #require(mmap(nil, way.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
      defer { munmap(memory, way.size) }
      // No later change of this page changes the times.
      let first = memory.assumingMemoryBound(to: UInt8.self)
      first[0] = bytes[0]
      let address = UInt(bitPattern: first)
      harness.store.script { request in
        if request.operation != .tusOptions { UnsafeMutablePointer<UInt8>(bitPattern: address)?[0] = ~bytes[0] }
        return []
      }
      let outcome = await harness.run(
        way.spec(harness) {
          $0.expect.sha256 = digest(.sha256, of: bytes)
          $0.ifExists = .skip
        })
      #expect(outcome.failure?.code == .digestMismatch, "\(outcome)")
      let isAbsent = way.uploaded(harness) == nil
      #expect(isAbsent)
    }
  }
}
