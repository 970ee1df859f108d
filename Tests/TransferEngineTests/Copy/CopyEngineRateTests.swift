import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Between two file systems, because one of them may share the blocks and so copy nothing.
@Suite(.enabled(if: access("/dev/shm", W_OK) == 0)) struct CopyEngineRateTests {
  private struct Bench {
    let copy: CopyEngine
    /// The root of the destination, as the kernel names it.
    let destination: String
    let spec = TaskSpec(
      id: .random(), kind: .copy, source: "storage://default/film.mp4", destination: "storage://other/film.mp4")
  }

  /// Runs `body` with a file of `size` bytes to copy, of which `rate` bytes a second may pass.
  private func run(
    size: Int, rate: Int64?, reserve: ReservePolicy = ReservePolicy(), _ body: (Bench) async throws -> Void
  ) async throws {
    let from = try TemporaryDirectory()
    let to = try TemporaryDirectory(prefix: "../../../../dev/shm/reelhaul-copy")
    let storage = Storage(roots: ["default": "\(from.path)/root", "other": "\(to.path)/root"], reserve: reserve)
    try storage.initialise()
    try write([UInt8](repeating: 7, count: size), to: "\(from.path)/root/film.mp4")
    let loop = EventLoop(name: "storage-copy-test")
    let roots = StorageRoots(storage, loop: loop, settings: .init(permits: { _ in false }, rate: rate))
    let name = try #require(to.path.split(separator: "/").last)
    try await body(Bench(copy: CopyEngine(roots: roots), destination: "/dev/shm/\(name)/root"))
    await roots.close()
    loop.shutdown()
  }

  @Test("a copy between storages keeps the common limit, and a stop ends its wait") func commonLimit() async throws {
    // All of it would take a quarter of an hour.
    try await run(size: 4 << 20, rate: 4 << 10) { bench in
      let ledger = RecordingLedger()
      let run = Task { await bench.copy.run(bench.spec, from: nil, ledger: ledger) }
      try await eventually("a portion is copied") { !ledger.progress.isEmpty }
      run.cancel()
      #expect(await run.value == .stopped)
      #expect(ledger.progress.max() ?? 0 < 1 << 20)
    }
  }

  @Test("a copy between storages takes no space that is to stay free") func reserve() async throws {
    try await run(size: 1 << 20, rate: nil, reserve: ReservePolicy(floor: .bytes(.max))) { bench in
      let outcome = await bench.copy.run(bench.spec, from: nil, ledger: RecordingLedger())
      let code = outcome.failure?.code
      #expect(code == .fileTooLarge || code == .diskFull, "\(outcome)")
      #expect(access("\(bench.destination)/film.mp4", F_OK) != 0)
    }
  }

  @Test("bytes are on stable storage before they are recorded as copied") func durable() async throws {
    // It takes longer than between two records.
    try await run(size: 8 << 20, rate: 2 << 20) { bench in
      await DiskWatch.run(below: bench.destination) { disk in
        let ahead = Lock<[ByteRanges]>([])
        let ledger = RecordingLedger { checkpoint in
          ahead.withLock { $0.append(checkpoint.done.subtracting(disk.stable(checkpoint.stagingName))) }
        }
        let outcome = await bench.copy.run(bench.spec, from: nil, ledger: ledger)
        #expect(outcome.failure == nil, "\(outcome)")
        let found = ahead.withLock { $0 }
        #expect(found.count > 1 && found.allSatisfy(\.isEmpty), "\(found)")
      }
    }
  }
}
