import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

/// A source that does not announce its length, and a disk without room for it.
@Suite(.enabled(if: SmallDisk.isPossible)) struct FullDiskTests {
  /// It matters whether the task itself or something else has filled the disk.
  @Test(
    "a disk that others filled lets the task wait, and one that it filled itself counts",
    arguments: [(true, TaskFailure.Class.wait), (false, .retry)])
  func aDiskFilledByOthersIsNotTheTasksFault(others: Bool, class: TaskFailure.Class) async throws {
    let disk = try SmallDisk(mebibytes: 10)
    let outcome = try await DownloadHarness.run(roots: ["small": disk.path]) {
      $0.syncBytes = 256 << 10
    } _: { harness in
      let file = OriginFile(seed: 61, size: 20 << 20).with { $0.tellsLength = false }
      harness.origin.serve(DownloadHarness.path, file)
      let gate = harness.origin.hold(DownloadHarness.path, from: 1 << 20)
      async let outcome = harness.run(harness.spec { $0.destination = "storage://small/film.mp4" })
      await gate.reached()
      if others { try fill(disk) }
      gate.open()
      return await outcome
    }
    #expect(outcome.failure?.code == .diskFull)
    #expect(outcome.failure?.class == `class`)
    #expect(outcome.failure?.retryAfter == RetryPolicy.longestBackoff)
  }

  private func fill(_ disk: SmallDisk) throws {
    let file = try FileDescriptor.open("\(disk.path)/others", O_WRONLY | O_CREAT)
    let bytes = [UInt8](repeating: 1, count: 64 << 10)
    var size: Int64 = 0
    while (try? bytes.withUnsafeBytes { try file.write($0, at: size) }) != nil { size += Int64(bytes.count) }
  }
}
