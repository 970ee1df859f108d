import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

@Suite struct DownloadStopTests {
  /// The task is paused when the head has arrived and the staging file is still being made.
  @Test("a run that is stopped before its staging file exists leaves nothing running")
  func nothingGoesOnAfterARunThatWasStoppedBeforeItHadItsFile() async throws {
    let origin = try OriginServer()
    origin.serve("/film.mp4", OriginFile(seed: 90, size: 8 << 20))
    let gate = origin.hold("/film.mp4", from: 0)
    let storage = try StorageFixture()
    let loop = EventLoop(name: "stop-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: true)
    let spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url("/film.mp4"), destination: "storage://default/film.mp4")
    let busy = try BusyThread(of: context.root.files)
    let download = Download(
      spec, source: try #require(CurlURL(spec.source)), credential: [], destination: try storage.url("film.mp4"),
      checkpoint: nil, file: nil, ledger: RecordingLedger(), context: context)
    let outcome = loop.task { await download.fetch() }
    try await eventually("the file is asked for") { try await loop.task { download.staged != nil }.value }
    try await loop.task { download.stop() }.value
    #expect(try await outcome.value == .stopped)

    try await busy.end()
    gate.open()
    await context.close()
    try await ends(loop)
    origin.close()
  }

  /// With a limit of one byte per second, the debt of the first bytes lasts for hours.
  @Test("a rate limit leaves no timer behind after the end of a run")
  func aLimitKeepsNothingWaitingBehindTheEnd() async throws {
    let origin = try OriginServer()
    origin.serve("/film.mp4", OriginFile(seed: 91, size: 8 << 20))
    let storage = try StorageFixture()
    let loop = EventLoop(name: "stop-test")
    var options = DownloadOptions()
    options.writeBuffer = 1024
    let context = DownloadContext(loop: loop, storage: storage, permits: true, options: options)
    var spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url("/film.mp4"), destination: "storage://default/film.mp4")
    spec.rate = 1
    let download = Download(
      spec, source: try #require(CurlURL(spec.source)), credential: [], destination: try storage.url("film.mp4"),
      checkpoint: nil, file: nil, ledger: RecordingLedger(), context: context)
    let outcome = loop.task { await download.fetch() }
    try await eventually("something is written") {
      try await loop.task { download.staged?.written.isEmpty == false }.value
    }
    try await loop.task { download.stop() }.value
    #expect(try await outcome.value == .stopped)
    await context.close()
    try await ends(loop)
    origin.close()
  }

  private func ends(_ loop: EventLoop) async throws {
    let hasEnded = Lock(false)
    Thread(name: "stop-test-end") {
      loop.shutdown()
      hasEnded.withLock { $0 = true }
    }.detach()
    try await eventually("the loop has nothing left to do", within: .seconds(30)) { hasEnded.withLock { $0 } }
  }

  /// All bytes of the file have arrived and are being hashed.
  @Test("a run that is stopped while its file is verified keeps all bytes")
  func aRunThatIsStoppedWhileItsFileIsVerifiedKeepsAll() async throws {
    // More than a thread that waits for the device hashes by the way: the busy thread is needed for it.
    let size: Int64 = 2 << 20
    let origin = try OriginServer()
    origin.serve("/film.mp4", OriginFile(seed: 92, size: size))
    let storage = try StorageFixture()
    let loop = EventLoop(name: "stop-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: true)
    let spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url("/film.mp4"), destination: "storage://default/film.mp4")
    let busy = try BusyThread(of: context.root.digests)
    let ledger = RecordingLedger()
    let download = Download(
      spec, source: try #require(CurlURL(spec.source)), credential: [], destination: try storage.url("film.mp4"),
      checkpoint: nil, file: nil, ledger: ledger, context: context)
    let outcome = loop.task { await download.fetch() }
    try await eventually("all is here") { try await loop.task { download.isPublishing }.value }
    try await loop.task { download.stop() }.value
    try await busy.end()
    #expect(try await outcome.value == .stopped)
    #expect(ledger.last?.done.count == size && ledger.last?.publishing == nil)
    await context.close()
    try await ends(loop)
    origin.close()
  }

  @Test("a run that is stopped while it reads a file that came to its destination meanwhile ends, and can go on")
  func stopsWhileItReadsWhatCameMeanwhile() async throws {
    let file = OriginFile(seed: 94, size: 300_000)
    let origin = try OriginServer()
    origin.serve("/film.mp4", file)
    let storage = try StorageFixture()
    let loop = EventLoop(name: "stop-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: true)
    var spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url("/film.mp4"), destination: "storage://default/film.mp4")
    spec.ifExists = .skip
    spec.expect.sha256 = file.sha256
    let other = "\(storage.root)/film.mp4"
    let large: Int64 = 1 << 37
    let ledger = RecordingLedger { checkpoint in
      // Reading it would take minutes.
      if checkpoint.publishing != nil { try FileDescriptor.open(other, O_WRONLY | O_CREAT).truncate(to: large) }
    }
    let download = Download(
      spec, source: try #require(CurlURL(spec.source)), credential: [], destination: try storage.url("film.mp4"),
      checkpoint: nil, file: nil, ledger: ledger, context: context)
    let outcome = loop.task { await download.fetch() }
    try await eventually("the other file is read") { ledger.progress.last.map { $0 > file.size } ?? false }
    try await loop.task { download.stop() }.value
    #expect(try await outcome.value == .stopped)
    #expect(ledger.last?.publishing != nil)
    await context.close()
    try await ends(loop)
    origin.close()
  }

  /// Reading existing files may take hours.
  @Test("reading whole existing files delays no download")
  func nothingWaitsForLooksAtWholeFiles() async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 93, size: 300_000)
      harness.origin.serve(DownloadHarness.path, file)
      let looks = try (0..<10).map { number in
        let path = "\(harness.directory.path)/large-\(number).mp4"
        try FileDescriptor.open(path, O_WRONLY | O_CREAT).truncate(to: 1 << 40)
        let spec = harness.spec {
          $0.destination = "storage://default/large-\(number).mp4"
          $0.ifExists = .skip
          $0.expect.sha256 = file.sha256
        }
        let ledger = RecordingLedger()
        return (ledger, Task { await harness.run(spec, ledger: ledger) })
      }
      try await eventually("some are read") { looks.contains { ($0.0.progress.last ?? 0) > 0 } }
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: file.sha256, bytes: 300_000))
      for (_, look) in looks {
        look.cancel()
        #expect(await look.value == .stopped)
      }
    }
  }
}

/// Blocks one thread of a pool until it is released.
private struct BusyThread {
  private let writer: Int32
  private let call: Task<Void, any Error>

  init(of pool: BlockingPool) throws {
    var pipe: [Int32] = [-1, -1]
    guard Glibc.pipe(&pipe) == 0 else { throw SystemError.last("pipe") }
    // A child process of another test that had the writing end, too, would keep the thread busy.
    for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let reader = pipe[0]
    writer = pipe[1]
    call = Task {
      try await pool.run {
        var byte: UInt8 = 0
        _ = read(reader, &byte, 1)
        close(reader)
      }
    }
  }

  func end() async throws {
    close(writer)
    try await call.value
  }
}

@Suite struct DigestFollowerTests {
  /// Hashing goes slice by slice, and stops when the digests are no longer wanted.
  @Test("the rest of a file is hashed in slices and can be stopped", arguments: [1, 3, 4]) func theRestIsHashedInSlices(
    wanted: Int
  ) async throws {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "follower-test")
    let pool = BlockingPool(name: "follower-test", threads: 1)
    let file = try storage.staged("x")
    let size = DigestFollower.slice * 3 + 1
    try file.truncate(to: size)
    let digests = try await loop.task {
      let follower = DigestFollower(file: file, withMD5: false, digests: pool, files: pool, loop: loop)
      var asked = 0
      do {
        let digests = try await follower.finish(size: size) {
          asked += 1
          return asked <= wanted
        }
        #expect(asked == 4)
        return digests as FileDigests?
      } catch is CancellationError {
        #expect(asked == wanted + 1)
        return nil
      }
    }.value
    #expect((digests != nil) == (wanted == 4))
    if let digests {
      let whole = try FileDescriptor.open("\(storage.staging)/\(file.name)", O_RDONLY)
      #expect(try FileDigests(of: whole, withMD5: false) { _ in true } == digests)
    }
    pool.shutdown()
    loop.shutdown()
  }
}
