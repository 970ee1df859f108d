import ControlAPI
import HTTPServer
import ReelhaulClient
import TaskCore
import TaskStore
import TestKit
import Testing

/// Limits, queues, workers and the history of tasks.
@Suite struct FleetControlTests {
  @Test("limits and queues are set, paused and released; null takes a limit away") func limits() async throws {
    try await APIBench.run { bench in
      let total = await bench.ask("PUT", "/v1/limits/total", #"{"limit": 7}"#)
      #expect(total.status == 200 && total.body.contains(#""limit":7"#))
      #expect(await bench.ask("PUT", "/v1/limits/host/Example.org", #"{"limit": 2}"#).status == 200)
      let queue = await bench.ask("PUT", "/v1/queues/archive", #"{"weight": 0.5, "limit": 0}"#)
      #expect(queue.status == 200 && queue.body.contains(#""weight":0.5"#) && queue.body.contains(#""limit":0"#))
      var uses = try await bench.store.limits()
      #expect(uses.first { $0.isOf(.total, "") }?.limit == 7)
      #expect(uses.first { $0.isOf(.host, "example.org") }?.limit == 2)
      let released = await bench.ask("PUT", "/v1/queues/archive", #"{"limit": null}"#)
      #expect(released.status == 200 && released.body.contains(#""weight":0.5"#))
      uses = try await bench.store.limits()
      let archive = try #require(uses.first { $0.isOf(.queue, "archive") })
      #expect(archive.limit == nil && archive.weight == 0.5)
      #expect(await bench.ask("PUT", "/v1/limits/total", #"{"limit": null}"#).status == 200)
      #expect(try await bench.store.limits().first { $0.isOf(.total, "") }?.limit == nil)
    }
  }

  @Test("wrong limits, queues and workers are refused with their reason") func wrong() async throws {
    try await APIBench.run { bench in
      for (status, method, target, body) in [
        (404, "PUT", "/v1/limits/planet", #"{"limit": 1}"#), (404, "PUT", "/v1/limits/total/x", #"{"limit": 1}"#),
        (404, "PUT", "/v1/limits/queue", #"{"limit": 1}"#), (422, "PUT", "/v1/limits/total", "{}"),
        (422, "PUT", "/v1/limits/total", #"{"limit": -1}"#), (422, "PUT", "/v1/limits/total", #"{"limit": 1.5}"#),
        (422, "PUT", "/v1/limits/total", #"{"limit": 1000001}"#),
        (400, "PUT", "/v1/limits/host/a%2Fb", #"{"limit": 1}"#),
        (422, "PUT", "/v1/limits/total", #"{"limits": 1}"#), (422, "PUT", "/v1/queues/a%20b", #"{"weight": 1}"#),
        (422, "PUT", "/v1/queues/a", #"{"weight": 0}"#), (422, "PUT", "/v1/queues/a", #"{"weight": "1"}"#),
        (422, "PUT", "/v1/queues/a", #"{"weight": NaN}"#), (400, "POST", "/v1/workers/7/actions/drain", "{}"),
        (404, "POST", "/v1/workers/\(UniqueID.make())/actions/drain", "{}"),
        (422, "POST", "/v1/workers/\(UniqueID.make())/actions/drain", #"{"now": true}"#),
        (404, "GET", "/v1/tasks/\(UniqueID.make())/history", ""),
      ] {
        let answer = await bench.ask(method, target, body)
        #expect(answer.status == status, "\(method) \(target) \(body): \(answer)")
        #expect(answer.body.contains(#""detail":""#))
      }
      let limits = try await bench.store.limits()
      #expect(limits.count == 1)
    }
  }

  @Test("a worker is asked to drain, and is shown so") func drain() async throws {
    try await APIBench.run { bench in
      let worker = try await bench.store.register(
        WorkerRegistration(
          boot: .make(), host: "mill", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:], version: "1.2.3"))
      let boot = try #require(try await bench.store.workers().first?.id)
      #expect(await bench.ask("GET", "/v1/workers").body.contains(#""state":"live","version":"1.2.3""#))
      let answer = await bench.ask("POST", "/v1/workers/\(boot)/actions/drain", "{}")
      #expect(answer.status == 202 && answer.body == #"{"worker":"\#(boot)","state":"draining"}"#)
      #expect(try await bench.store.renew(worker, samples: []).isDraining)
      let workers = await bench.ask("GET", "/v1/workers").body
      #expect(workers.contains(#""state":"draining""#) && workers.contains(#""leaseAgeSeconds":"#))
    }
  }

  @Test("that a worker of an earlier version may not know the request to drain is told") func oldWorker() async throws {
    try await APIBench.run { bench in
      _ = try await bench.store.register(
        WorkerRegistration(boot: .make(), host: "mill", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
      let boot = try #require(try await bench.store.workers().first?.id)
      let answer = await bench.ask("POST", "/v1/workers/\(boot)/actions/drain", "{}")
      #expect(answer.status == 202)
      #expect(answer.body.contains(#""remark":"the worker is of an earlier version"#), "\(answer)")
    }
  }

  @Test("the history of a task tells its plain and its unusual events in order") func history() async throws {
    try await APIBench.run { bench in
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      let worker = try await bench.store.register(
        WorkerRegistration(boot: .make(), host: "mill", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
      func claim(_ call: Int64) async throws -> Claim {
        let claims = try await bench.store.claim(worker, limit: 1, call: call)
        guard let first = claims.first else { throw NothingClaimed() }
        return first
      }
      let failure = TaskFailure(code: .http(404), message: "gone", class: .fail)
      let failed = Settlement(taskID: id, epoch: try await claim(1).epoch, outcome: .failed(failure, retryIn: nil))
      #expect(try await bench.store.settle([failed]) == [true])
      let first = await bench.ask("GET", "/v1/tasks/\(id)/history").body
      #expect(first.contains(#""type":"submitted""#) && first.contains(#""type":"failed""#), "\(first)")
      #expect(first.contains(#""message":"gone","advice":"#))
      #expect(await bench.ask("POST", "/v1/tasks/\(id)/actions/retry", "{}").status == 202)
      let again = Settlement(
        taskID: id, epoch: try await claim(2).epoch, outcome: .succeeded(sha256: nil, bytes: 0))
      #expect(try await bench.store.settle([again]) == [true])
      let body = await bench.ask("GET", "/v1/tasks/\(id)/history").body
      let types = body.split(separator: #""type":""#).dropFirst().map { String($0.prefix { $0 != "\"" }) }
      #expect(types == ["submitted", "failed", "retrying", "started", "succeeded"], "\(body)")
      #expect(!body.contains("advice"))
    }
  }
}

private struct NothingClaimed: Error {}
