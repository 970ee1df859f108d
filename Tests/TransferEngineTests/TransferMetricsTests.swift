import Glibc
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What transfers count. Bytes that came, less those that must come again, are the file.
@Suite struct TransferMetricsTests {
  private static let size: Int64 = 1_500_001
  private static let file = OriginFile(seed: 31, size: size)
  private static let other = OriginFile(seed: 32, size: size)

  private func metrics(_ roots: StorageRoots) throws -> PrometheusText {
    var text = MetricsSnapshot()
    roots.write(to: &text)
    return try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
  }

  private func received(_ text: PrometheusText) -> Double {
    text.value("reelhaul_transfer_bytes_total", ["direction": "download", "scheme": "http"])
  }

  private func refetched(_ text: PrometheusText) -> [String: Double] {
    Dictionary(
      uniqueKeysWithValues: (text.families["reelhaul_transfer_refetched_bytes_total"]?.series ?? []).map {
        ($0.labels["cause"] ?? "", $0.value)
      }
    ).filter { $0.value > 0 }
  }

  /// Without what another connection had taken over, which depends on the moment.
  private func lost(_ text: PrometheusText) -> [String: Double] { refetched(text).filter { $0.key != "steal" } }

  /// The bytes of files that are there, or will be.
  private func kept(_ text: PrometheusText) -> Double { received(text) - refetched(text).values.reduce(0, +) }

  /// Serves `file` but holds back its second half, runs until the first half is written, and ends the run.
  private func half(
    _ harness: DownloadHarness, _ spec: TaskSpec, _ file: OriginFile = file,
    ledger: RecordingLedger = RecordingLedger(),
    losesTask: Bool = false
  ) async throws -> DownloadCheckpoint? {
    harness.origin.serve(DownloadHarness.path, file)
    let gate = OriginGate()
    harness.origin.script(DownloadHarness.path) { request in
      (request.range?.first ?? 0) >= 700_000 || request.range == nil ? [.hold(after: 50_000, gate)] : []
    }
    let task = Task { await harness.run(spec, ledger: ledger) }
    await gate.reached()
    try await eventually("bytes are written, or may be no more") {
      !ledger.mayWrite || ledger.progress.last ?? 0 >= (file.etag == nil ? 1 : 700_000)
    }
    if !losesTask {
      let text = try metrics(harness.roots)
      #expect(text.value("reelhaul_transfers_active", ["scheme": "http"]) == 1)
      #expect(text.value("reelhaul_connections_active") >= 1)
      task.cancel()
    }
    #expect(await task.value == .stopped)
    gate.open()
    harness.origin.script(DownloadHarness.path) { _ in [] }
    return ledger.last
  }

  @Test("a download counts the bytes that it received, and nothing twice, also over two runs")
  func download() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      #expect(await harness.run(spec, from: checkpoint).failure == nil)
      let text = try metrics(harness.roots)
      #expect(kept(text) == Double(Self.size))
      #expect(lost(text) == [:])
      #expect(text.value("reelhaul_transfers_active", ["scheme": "http"]) == 0)
      #expect(text.value("reelhaul_connections_active") == 0)
      #expect(text.value("reelhaul_sync_seconds") >= 1)
    }
  }

  @Test("bytes of a former version of the source count as fetched again") func newGeneration() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      harness.origin.serve(DownloadHarness.path, Self.other)
      #expect(await harness.run(spec, from: checkpoint).failure == nil)
      let text = try metrics(harness.roots)
      #expect(refetched(text)["new_generation"] ?? 0 >= Double(checkpoint.done.count))
      #expect(kept(text) == Double(Self.size))
    }
  }

  @Test("bytes whose staging file is gone count as fetched again") func lostFile() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      #expect(unlink("\(harness.directory.path)/.reelhaul/staging/\(checkpoint.stagingName)") == 0)
      #expect(await harness.run(spec, from: checkpoint).failure == nil)
      let text = try metrics(harness.roots)
      #expect(lost(text) == ["lost_file": Double(checkpoint.done.count)])
      #expect(kept(text) == Double(Self.size))
    }
  }

  @Test("bytes of a source whose versions cannot be told apart are not kept, and count as fetched again")
  func notKept() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let file = Self.file.withoutValidators()
      #expect(try await half(harness, spec, file) == nil)
      let text = try metrics(harness.roots)
      let cut = received(text)
      #expect(cut > 0 && refetched(text) == ["retry": cut])
      #expect(await harness.run(spec).failure == nil)
      let later = try metrics(harness.roots)
      #expect(received(later) == cut + Double(Self.size))
    }
  }

  @Test("bytes that a run cannot record because it has lost its task count as fetched again")
  func lostLease() async throws {
    try await DownloadHarness.run { harness in
      let owner = Lock<RecordingLedger?>(nil)
      // The bytes are on the disk when the store says that the task has another owner.
      let ledger = RecordingLedger { _ in
        owner.withLock { $0?.revoke() }
        throw RecordingLedger.Refused()
      }
      owner.withLock { $0 = ledger }
      _ = try await half(harness, harness.spec(), ledger: ledger, losesTask: true)
      owner.withLock { $0 = nil }
      let text = try metrics(harness.roots)
      #expect(lost(text)["lost_lease"] ?? 0 > 0 && kept(text) == 0)
    }
  }

  @Test("an upload counts its bytes, and its parts by what became of them") func upload() async throws {
    let size = 20_000_000
    try await UploadHarness.run { harness in
      try harness.put(OriginContent(seed: 7).bytes(0..<Int64(size)))
      harness.store.script {
        $0.operation == .uploadPart && $0.partNumber == 2 && $0.attempt == 1 ? [.wrongChecksumEcho] : []
      }
      var spec = TaskSpec(
        id: .random(), kind: .upload, source: UploadHarness.source, destination: "s3://films/film.mp4")
      spec.credential = "s3"
      #expect(await harness.run(spec).failure == nil)
      let text = try metrics(harness.roots)
      func parts(_ result: String) -> Double {
        text.value("reelhaul_upload_parts_total", ["scheme": "s3", "result": result])
      }
      #expect(parts("stored") == 3 && parts("failed") == 1)
      #expect(
        text.value("reelhaul_transfer_bytes_total", ["direction": "upload", "scheme": "s3"])
          == Double(size + (8 << 20)))
      #expect(text.value("reelhaul_transfers_active", ["scheme": "s3"]) == 0)
    }
  }
}
