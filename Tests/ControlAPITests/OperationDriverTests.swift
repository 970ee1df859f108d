import HTTPServer
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ControlAPI

/// One driver with several operations, of which Kafka does not take all.
@Suite struct OperationDriverTests {
  @Test("one whose commands wait for Kafka holds up no other one, and that it waits is told") func waiting()
    async throws
  {
    try await APIBench.run { bench in
      let hosts = ["a", "b"]
      let specs = hosts.map { TaskSpec(id: .make(), kind: .noop, source: "https://\($0)/x", destination: nil) }
      _ = try await bench.store.apply(specs.map(Command.submit))
      for host in hosts {
        let body = #"{"action": "pause", "filter": {"host": ["\#(host)"]}}"#
        #expect(await bench.ask("POST", "/v1/operations", body).status == 202)
      }
      let (others, told) = (Lock(false), Lock<[Bool]>([]))
      let driver = OperationDriver(
        store: bench.store,
        send: { [store = bench.store] commands in
          guard commands.map(\.taskID) == [specs[0].id] else {
            others.withLock { $0 = true }
            _ = try await store.apply(commands)
            return
          }
          // As long as Kafka's client has patience.
          try await eventually("the other's commands are sent") { others.withLock { $0 } }
          throw HTTPError(503, "its partition has no leader")
        }, loop: bench.loop, onOutage: { error in told.withLock { $0.append(error != nil) } })
      let work = bench.loop.task { await driver.run() }
      try await eventually("the other one has ended") { try await bench.store.task(specs[1].id)?.state == .paused }
      try await eventually("it is told") { !told.withLock { $0.isEmpty } }
      work.cancel()
      _ = await work.result
      #expect(told.withLock { $0 } == [true])
    }
  }
}
