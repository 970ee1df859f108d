import Glibc
import System
import TaskCore
import TestKit
import Testing

@testable import Curl
@testable import TransferEngine

@Suite struct DownloadStopTests {
  /// The head has come, the staging file is still being made, and the task is paused.
  @Test func nothingGoesOnAfterARunThatWasStoppedBeforeItHadItsFile() async throws {
    let origin = try OriginServer()
    origin.serve("/film.mp4", OriginFile(seed: 90, size: 8 << 20))
    let gate = origin.hold("/film.mp4", from: 0)
    let storage = try StorageFixture()
    let loop = EventLoop(name: "stop-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: true)
    let spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url("/film.mp4"), destination: "storage://default/film.mp4")
    var pipe: [Int32] = [-1, -1]
    #expect(Glibc.pipe(&pipe) == 0)
    let (reader, writer) = (pipe[0], pipe[1])
    async let busy: Void = context.files.run {
      var byte: UInt8 = 0
      _ = read(reader, &byte, 1)
    }

    let download = Download(
      spec, source: try #require(CurlURL(spec.source)), credential: [], destination: try storage.url("film.mp4"),
      checkpoint: nil, file: nil, ledger: RecordingLedger(), context: context)
    let outcome = loop.task { await download.fetch() }
    try await eventually("the file is asked for") { try await loop.task { download.staged != nil }.value }
    try await loop.task { download.stop() }.value
    #expect(try await outcome.value == .stopped)

    #expect(write(writer, [0], 1) == 1)
    try await busy
    gate.open()
    await context.close()
    let hasEnded = Lock(false)
    Thread(name: "stop-test-end") {
      loop.shutdown()
      hasEnded.withLock { $0 = true }
    }.detach()
    try await eventually("the loop has nothing left to do", within: .seconds(30)) { hasEnded.withLock { $0 } }
    close(reader)
    close(writer)
    origin.close()
  }
}
