import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

@Suite struct StorageCopyRateTests {
  /// Between two file systems, because one of them may share the blocks and so copy nothing.
  @Test(
    "a copy between storages keeps the common limit, and a stop ends its wait",
    .enabled(if: access("/dev/shm", W_OK) == 0))
  func commonLimit() async throws {
    let from = try TemporaryDirectory()
    let to = try TemporaryDirectory(prefix: "../../../../dev/shm/reelhaul-copy")
    let storage = Storage(roots: ["default": "\(from.path)/root", "other": "\(to.path)/root"])
    try storage.initialise()
    let size: Int64 = 4 << 20
    try write([UInt8](repeating: 7, count: Int(size)), to: "\(from.path)/root/film.mp4")
    let loop = EventLoop(name: "storage-copy-test")
    // All of it would take a quarter of an hour.
    let roots = StorageRoots(storage, loop: loop, settings: .init(permits: { _ in false }, rate: 4 << 10))
    let spec = TaskSpec(
      id: .random(), kind: .copy, source: "storage://default/film.mp4", destination: "storage://other/film.mp4")
    let ledger = RecordingLedger()
    let run = Task { await StorageCopy(roots: roots).run(spec, from: nil, ledger: ledger) }
    try await eventually("a portion is copied") { !ledger.progress.isEmpty }
    run.cancel()
    #expect(await run.value == .stopped)
    #expect(ledger.progress.max() ?? 0 < 1 << 20)
    await roots.close()
    loop.shutdown()
  }

  @Test(
    "bytes are on stable storage before they are recorded as copied",
    .enabled(if: access("/dev/shm", W_OK) == 0))
  func durable() async throws {
    let from = try TemporaryDirectory()
    let to = try TemporaryDirectory(prefix: "../../../../dev/shm/reelhaul-copy")
    let storage = Storage(roots: ["default": "\(from.path)/root", "other": "\(to.path)/root"])
    try storage.initialise()
    let size: Int64 = 8 << 20
    try write([UInt8](repeating: 7, count: Int(size)), to: "\(from.path)/root/film.mp4")
    let loop = EventLoop(name: "storage-copy-test")
    // It takes longer than between two records.
    let roots = StorageRoots(storage, loop: loop, settings: .init(permits: { _ in false }, rate: 2 << 20))
    let spec = TaskSpec(
      id: .random(), kind: .copy, source: "storage://default/film.mp4", destination: "storage://other/film.mp4")
    // As the kernel names it.
    let name = try #require(to.path.split(separator: "/").last)
    await DiskWatch.run(below: "/dev/shm/\(name)/root") { disk in
      let ahead = Lock<[ByteRanges]>([])
      let ledger = RecordingLedger { checkpoint in
        ahead.withLock { $0.append(checkpoint.done.subtracting(disk.stable(checkpoint.stagingName))) }
      }
      let outcome = await StorageCopy(roots: roots).run(spec, from: nil, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      let found = ahead.withLock { $0 }
      #expect(found.count > 1 && found.allSatisfy(\.isEmpty), "\(found)")
    }
    await roots.close()
    loop.shutdown()
  }
}
