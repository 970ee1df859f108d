import ReelhaulSystem
import TestKit
import Testing

@testable import LocalFleet

@Suite struct ProcessSlotTests {
  private final class Script: SupervisedProcess {
    private struct State {
      var status: ReelhaulSystem.ExitStatus?
      var waiter: CheckedContinuation<ReelhaulSystem.ExitStatus, Never>?
    }

    private let end = Lock(State())

    func finish(_ status: ReelhaulSystem.ExitStatus) {
      end.withLock { end in
        end.status = end.status ?? status
        return end.waiter.take()
      }?.resume(returning: status)
    }

    func ended() async -> ReelhaulSystem.ExitStatus {
      await withCheckedContinuation { waiter in
        let status = end.withLock { end in
          if end.status == nil { end.waiter = waiter }
          return end.status
        }
        if let status { waiter.resume(returning: status) }
      }
    }
  }

  private struct Gone: Error, CustomStringConvertible {
    let description = "no such file"
  }

  /// The last of `restarts` runs until it is stopped.
  private func supervise(
    _ restarts: [@Sendable () throws -> Script]
  ) async throws -> (delays: [Duration], said: [String]) {
    let (delays, said, left) = (Lock<[Duration]>([]), Lock<[String]>([]), Lock(restarts))
    let first = Script()
    first.finish(.exited(1))
    let slot = ProcessSlot(
      first, name: "p", logFile: "p.log", say: { sentence in said.withLock { $0.append(sentence) } },
      sleep: { delay in delays.withLock { $0.append(delay) } },
      restart: { try left.withLock { $0.removeFirst() }() })
    try await eventually("the last one runs") {
      left.withLock { $0.isEmpty } && said.withLock { $0.last == "p runs again" }
    }
    await slot.stop { $0.finish(.signaled(15)) }
    return (delays.withLock { $0 }, said.withLock { $0 })
  }

  @Test("a process that ends at once is started again after growing waits")
  func waitsLongerWhereTheProcessEndsAtOnce() async throws {
    let ends: @Sendable () -> Script = {
      let script = Script()
      script.finish(.exited(2))
      return script
    }
    let (delays, said) = try await supervise([ends, ends, ends, { Script() }])
    #expect(delays == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4)])
    #expect(said.first == "p ended with exit 1; starting it again in 0.5 seconds. Its log: p.log")
  }

  @Test("a worker that was told to drain is followed by a new one, and counts as no crash")
  func drained() async throws {
    let ends: @Sendable () -> Script = {
      let script = Script()
      script.finish(.exited(0))
      return script
    }
    let (delays, said) = try await supervise([ends, ends, ends, { Script() }])
    #expect(delays == .init(repeating: .milliseconds(500), count: 4))
    #expect(said.contains("p has ended in order; starting it again in 0.5 seconds. Its log: p.log"))
  }

  @Test("a process that cannot be started is tried again after growing waits")
  func waitsLongerWhereItCannotBeStarted() async throws {
    let fails: @Sendable () throws -> Script = { throw Gone() }
    let (delays, said) = try await supervise([fails, fails, { Script() }])
    #expect(delays == [.milliseconds(500), .seconds(1), .seconds(2)])
    #expect(said[1] == "p cannot be started: no such file. Trying again in 1.0 seconds")
  }

  @Test("a process that starts while its slot is being stopped is ended")
  func aProcessThatStartsDuringAStopIsEnded() async throws {
    let first = Script()
    let second = Script()
    let isStarting = Lock(false)
    let mayStart = Lock(false)
    let slot = ProcessSlot(
      first, name: "p", logFile: "p.log", say: { _ in }, sleep: { _ in },
      restart: {
        isStarting.withLock { $0 = true }
        return await Task.detached {
          try? await eventually("it may start") { mayStart.withLock { $0 } }
          return second
        }.value
      })
    first.finish(.exited(1))
    try await eventually("it is being started") { isStarting.withLock { $0 } }
    await slot.stop { process in
      mayStart.withLock { $0 = true }
      process.finish(.signaled(15))
    }
    #expect(await second.ended() == .signaled(15))
    #expect(slot.process === second)
  }

  @Test("a worker that does not end when it is asked is ended by force") func stubborn() async throws {
    let directory = try TemporaryDirectory()
    let (program, log) = ("\(directory.path)/worker", "\(directory.path)/log")
    let script = """
      #!/bin/sh
      trap '' TERM
      echo begun
      for second in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done
      echo ended by itself
      """
    try TextFile.write(script, to: program, mode: 0o755)
    let slot = try WorkerSlot(worker: "w", executable: program, environment: [:], logFile: log, say: { _ in })
    try await eventually("it has begun") { (try? TextFile.read(log)) == "begun\n" }
    await slot.stop(within: .milliseconds(100))
    #expect(try TextFile.read(log) == "begun\n")
  }

  @Test("starting a worker without its executable throws an error")
  func aWorkerWhoseExecutableIsGoneIsNamed() {
    #expect(throws: SystemError.self) {
      try WorkerSlot(worker: "w", executable: "/nonexistent", environment: [:], logFile: "/dev/null", say: { _ in })
    }
  }
}
