import TaskStore
import Testing

@testable import ControlAPI

@Suite struct HookRouteTests {
  @Test("the web hook of a queue is set, shown without its secrets, and ended; a body without it is refused")
  func queue() async throws {
    try await APIBench.run { bench in
      let target = "/v1/queues/films/notify"
      #expect(await bench.ask("GET", target).body == #"{"notify":null}"#)
      let set = await bench.ask("PUT", target, #"{"notify": "https://hooks.example/h?key=hush"}"#)
      #expect(set.status == 200 && set.body == #"{"notify":"https://hooks.example/h?key=***"}"#, "\(set)")
      for body in ["{}", "[]", #"{"notify": 7}"#, #"{"notify": "ftp://a.example/"}"#, #"{"notice": null}"#] {
        #expect(await bench.ask("PUT", target, body).status == 422, "\(body)")
      }
      let kept = try await bench.store.queueHooks()
      #expect(kept == ["films": "https://hooks.example/h?key=hush"])
      #expect(await bench.ask("PUT", target, #"{"notify": null}"#).body == #"{"notify":null}"#)
      let ended = try await bench.store.queueHooks()
      #expect(ended.isEmpty)
    }
  }
}
