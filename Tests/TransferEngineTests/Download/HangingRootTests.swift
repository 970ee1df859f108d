import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// A root whose file system does not answer: its marker is a pipe, and opening it blocks until somebody writes to it.
final class HangingRoot: Sendable {
  private let directory: TemporaryDirectory
  private let marker: String

  init() throws {
    directory = try TemporaryDirectory()
    marker = "\(directory.path)/.reelhaul/volume"
    try Volume.initialise(name: "hanging", path: directory.path)
    unlink(marker)
    guard mkfifo(marker, 0o600) == 0 else { throw SystemError.last("mkfifo \(marker)") }
  }

  var path: String { directory.path }

  /// Lets hanging calls return while the result is held: they find no marker then.
  func answers() throws -> FileDescriptor {
    try FileDescriptor.open(marker, O_RDWR)
  }
}

@Suite struct HangingRootTests {
  @Test("a root that hangs delays no download to another root")
  func itHoldsUpNoDownloadToAnother() async throws {
    let root = try HangingRoot()
    try await DownloadHarness.run(roots: ["hanging": root.path]) { harness in
      let file = OriginFile(seed: 60, size: 300_000)
      harness.origin.serve(DownloadHarness.path, file)
      // More downloads than threads.
      let hanging = (0..<20).map { index in
        let spec = harness.spec { $0.destination = "storage://hanging/\(index)" }
        return Task { await harness.run(spec) }
      }
      let healthy = Task { await harness.run(harness.spec()) }
      let isOver = Lock(false)
      Task {
        _ = await healthy.value
        isOver.withLock { $0 = true }
      }
      try? await eventually("the download to the root that answers is over") {
        isOver.withLock { $0 }
      }
      let pipe = try root.answers()
      #expect(await healthy.value == .succeeded(sha256: file.sha256, bytes: file.size))
      for run in hanging { #expect(await run.value.failure != nil) }
      _ = consume pipe
    }
  }

  @Test("copies from a root that hangs delay no copy from another, and no reads of the destination")
  func itHoldsUpNoCopyFromAnother() async throws {
    let other = try TemporaryDirectory()
    try await DownloadHarness.run(roots: ["hanging": other.path]) { harness in
      let gate = Condition(false)
      let (to, from) = (harness.roots["default"]!, harness.roots["hanging"]!)
      // More copies than threads.
      let hanging = (0..<20).map { _ in
        Task { try await to.copy(from: from) { gate.wait(until: { $0 }, then: { _ in }) } }
      }
      let isOver = Lock(false)
      Task {
        try await to.copy(from: to) {}
        try await to.readWhole(pulse: {}) {}
        isOver.withLock { $0 = true }
      }
      try? await eventually("the others are over") { isOver.withLock { $0 } }
      #expect(isOver.withLock { $0 })
      gate.withLock { $0 = true }
      gate.broadcast()
      for call in hanging { try await call.value }
    }
  }
}
