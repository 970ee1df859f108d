import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Downloads from servers that are far away, or give each connection little. What is counted is connections and requests:
/// speed is measured by `reelhaul bench far`.
struct FarServerTests {
  private static let size: Int64 = 24 << 20

  /// The real sizes of chunks: those of the harness are for small files.
  private func download(
    _ way: FarProxy.Way, hostConnections: Int = 16, size: Int64 = size, tasks: Int = 1,
    connections: Int = TaskSpec.standardConnections, rate: Int64? = nil,
    _ check: (DownloadHarness, FarProxy) async throws -> Void = { _, _ in }
  ) async throws {
    try await DownloadHarness.run {
      $0.download.limits = DownloadLimits()
      $0.hostConnections = hostConnections
    } _: { harness in
      let file = OriginFile(seed: 5, size: size)
      harness.origin.serve(DownloadHarness.path, file)
      let proxy = try FarProxy(to: harness.origin.port, way)
      defer { proxy.close() }
      try await withThrowingTaskGroup { group in
        for number in 0..<tasks {
          var spec = harness.spec()
          spec.source = "http://127.0.0.1:\(proxy.port)\(DownloadHarness.path)"
          spec.destination = "storage://default/in/\(number).mp4"
          (spec.connections, spec.rate) = (connections, rate)
          group.addTask { [spec] in
            let outcome = await harness.run(spec)
            #expect(outcome == .succeeded(sha256: file.sha256, bytes: file.size))
          }
        }
        try await group.waitForAll()
      }
      try await check(harness, proxy)
    }
  }

  @Test("a server that gives each connection little is asked on all connections")
  func aSlowServerIsAskedOnAllConnections() async throws {
    try await download(.init(delay: .milliseconds(20), jitter: .milliseconds(5), rate: 1 << 20)) { _, proxy in
      #expect(proxy.most == 16)
      // Not many more than that: connections are used again.
      #expect(proxy.accepted <= 48)
    }
  }

  @Test("--connections limits a task")
  func aTaskMayBeLimited() async throws {
    try await download(.init(rate: 4 << 20), connections: 3) { _, proxy in
      #expect(proxy.most == 3)
    }
  }

  @Test("a host gets no more connections than its limit, whatever the number of tasks", arguments: [1, 4, 12])
  func aHostIsLimited(tasks: Int) async throws {
    try await download(
      .init(rate: 2 << 20), hostConnections: 6, size: tasks == 1 ? Self.size : 5 << 20, tasks: tasks
    ) { _, proxy in
      // The proxy may see the end of a connection after the beginning of the next.
      #expect(proxy.most <= 6 + 2)
      if tasks > 1 { #expect(proxy.most >= 6) }
    }
  }

  @Test("a server that refuses connections beyond some is not asked on more, and the file is whole")
  func aServerThatRefusesIsNotAskedOnMore() async throws {
    try await download(.init(rate: 4 << 20, connections: 5)) { _, proxy in
      #expect(proxy.refused > 0 && proxy.refused <= 16)
    }
  }

  @Test("downloads of a host that serves fewer requests than there are downloads all succeed", arguments: [429, 503])
  func aHostThatServesFewIsNotAskedForMore(status: Int) async throws {
    try await DownloadHarness.run {
      $0.limits.retryMilliseconds = 50
    } _: { harness in
      let (file, gate) = (OriginFile(seed: 5, size: 128 << 10), OriginGate())
      harness.origin.serve(DownloadHarness.path, file)
      harness.origin.script(DownloadHarness.path) { $0.inProgress > 2 ? [.answer(status)] : [.hold(after: 1000, gate)] }
      try await withThrowingTaskGroup { group in
        for number in 0..<6 {
          let spec = harness.spec { $0.destination = "storage://default/\(number).mp4" }
          group.addTask {
            #expect(await harness.run(spec) == .succeeded(sha256: file.sha256, bytes: file.size))
          }
        }
        // A download that counts its refusals ends before the others do.
        let host = "127.0.0.1:\(harness.origin.port)"
        try await eventually("the others wait for their turn") { harness.roots.hosts.waiting(for: host) == 4 }
        gate.open()
        try await group.waitForAll()
      }
    }
  }

  @Test("a signed URL whose request had to wait for its host is replaced before it is used")
  func aSignedURLIsFreshWhenItIsUsed() async throws {
    let (store, file, gate) = (try OriginServer(), OriginFile(seed: 5, size: 1000), OriginGate())
    defer { store.close() }
    try await DownloadHarness.run {
      $0.hostConnections = 1
    } _: { harness in
      for path in ["/busy.mp4", "/signed/1", "/signed/2"] { store.serve(path, file) }
      store.always("/busy.mp4", .hold(after: 10, gate))
      store.always("/signed/1", .answer(410))
      harness.origin.script(DownloadHarness.path) {
        [.redirect(to: "http://127.0.0.1:\(store.port)/signed/\($0.number)")]
      }
      let busy = harness.spec {
        ($0.source, $0.destination) = ("http://127.0.0.1:\(store.port)/busy.mp4", "storage://default/busy.mp4")
      }
      let first = Task { await harness.run(busy) }
      await gate.reached()
      let second = Task { await harness.run(harness.spec()) }
      try await eventually("the other one waits") {
        harness.roots.hosts.waiting(for: "127.0.0.1:\(store.port)") == 1
      }
      try await Task.sleep(for: .milliseconds(1100))
      gate.open()
      #expect(await first.value == .succeeded(sha256: file.sha256, bytes: file.size))
      #expect(await second.value == .succeeded(sha256: file.sha256, bytes: file.size))
      #expect(store.exchanges("/signed/1").isEmpty)
      #expect(harness.roots.hosts.used == 0)
    }
  }

  @Test("a limited task uses one connection where that is enough")
  func aLimitedTaskUsesOneConnection() async throws {
    // Where the machine stands still at its beginning, a download cannot know that one is enough.
    let most = Lock(0)
    for _ in 0..<3 where most.withLock({ $0 }) != 1 {
      try await download(.init(), size: 6 << 20, rate: 3 << 20) { _, proxy in most.withLock { $0 = proxy.most } }
    }
    #expect(most.withLock { $0 } == 1)
  }

  @Test("a limited task that has the only connection gives it to a task that waits for it")
  func aLimitedTaskGivesWay() async throws {
    try await DownloadHarness.run {
      $0.hostConnections = 1
      $0.limits = DownloadLimits()
      $0.limits.chunks.turnMilliseconds = 500
    } _: { harness in
      let (slow, other) = (OriginFile(seed: 5, size: 4 << 20), OriginFile(seed: 6, size: 1000))
      harness.origin.serve("/slow.mp4", slow)
      harness.origin.serve("/other.mp4", other)
      let running = Task {
        await harness.run(
          harness.spec("/slow.mp4") { ($0.destination, $0.rate) = ("storage://default/slow.mp4", 128 << 10) })
      }
      _ = await harness.origin.first { $0.request.path == "/slow.mp4" && $0.status == 206 }
      #expect(await harness.run(harness.spec("/other.mp4")) == .succeeded(sha256: other.sha256, bytes: other.size))
      running.cancel()
      #expect(await running.value == .stopped, "the other one did not wait for its end")
    }
  }

  @Test("the next download from a host begins with what was right for the one before")
  func whatWasRightIsRemembered() async throws {
    try await DownloadHarness.run {
      $0.download.limits = DownloadLimits()
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 5, size: 24 << 20))
      let proxy = try FarProxy(to: harness.origin.port, .init(rate: 1 << 20))
      defer { proxy.close() }
      for number in 0..<2 {
        var spec = harness.spec()
        spec.source = "http://127.0.0.1:\(proxy.port)\(DownloadHarness.path)"
        spec.destination = "storage://default/in/\(number).mp4"
        let outcome = await harness.run(spec)
        guard case .succeeded = outcome else {
          Issue.record("\(outcome)")
          return
        }
      }
      // Of the second download the first request alone teaches where the source is.
      let exchanges = harness.origin.exchanges(DownloadHarness.path)
      let second = try #require(exchanges.lastIndex { $0.request["range"]?.hasPrefix("bytes=0-") == true })
      #expect(exchanges[second...].dropFirst(2).prefix(12).allSatisfy { $0.request.inProgress >= 2 })
    }
  }
}
