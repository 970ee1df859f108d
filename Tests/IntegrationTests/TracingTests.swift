import Glibc
import HTTPServer
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// W3C trace context from the API through Kafka and PostgreSQL to the runs, their log lines, and a receiver of OTLP.
@Suite struct TracingTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let parent = "00-\(trace)-00f067aa0ba902b7-01"

  private static func settings(_ receiver: HookReceiver) -> [String: String] {
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:\(receiver.port)", "OTEL_BSP_SCHEDULE_DELAY": "100",
      "OTEL_METRIC_EXPORT_INTERVAL": "300",
    ]
  }

  private func spans(_ receiver: HookReceiver) throws -> [OTLPReference.Item] {
    try OTLPReference.items(of: receiver.posts.filter { $0.path == "/v1/traces" })
  }

  @Test("a request's trace goes on in its task: the submit, each run and the whole life, events and log lines")
  func requestToRun() async throws {
    let receiver = try await HookReceiver { _, _ in HTTPResponse(200, type: "application/json", Array("{}".utf8)) }
    let fleet = try await TestFleet.start(workers: 1, environment: Self.settings(receiver))
    let id = UniqueID.make()
    fleet.origin.serve("/a.mp4", OriginFile(seed: 5, size: 100_000))
    fleet.origin.script("/a.mp4") { $0.number == 1 ? [.answer(404)] : [] }
    let source = fleet.origin.url("/a.mp4")
    try await fleet.serving { port in
      let client = try RawClient(port: port)
      let body = #"{"id":"\#(id)","source":"\#(source)"}"#
      client.send(
        "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
          + "traceparent: \(Self.parent)\r\ntracestate: v=1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      #expect(client.receive().hasPrefix("HTTP/1.1 202"))
      try await fleet.wait(for: id, .failed)
      try await fleet.client.retry(id)
      try await fleet.eventually("it succeeds") { try await fleet.store.task(id)?.state == .succeeded }
      try await fleet.eventually("all spans have come") {
        let names = try spans(receiver).map(\.name)
        return names.contains("POST /v1/tasks")
          && ["task download", "run download"].allSatisfy { name in names.count { $0 == name } == 2 }
      }
    }
    let all = try spans(receiver)
    func named(_ name: String) -> [OTLPReference.Item] { all.filter { $0.name == name } }
    #expect(all.allSatisfy { $0.trace == Self.trace && $0.state == "v=1" })
    let request = try #require(named("POST /v1/tasks").first)
    #expect(request.parent == "00f067aa0ba902b7" && request.service == "reelhaul-serve")
    #expect(request.attributes["http.response.status_code"] == "202" && request.kind == "SPAN_KIND_SERVER")
    let lives = named("task download")
    let life = try #require(lives.last)
    #expect(lives.allSatisfy { $0.span == life.span && $0.parent == request.span && $0.service == "reelhaul-worker" })
    #expect(lives[0].attributes["reelhaul.outcome"] == "failed" && lives[0].error != "" && life.error == "")
    #expect(life.attributes["reelhaul.outcome"] == "succeeded" && life.attributes["reelhaul.bytes"] == "100000")
    let parts = named("submit") + named("run download")
    #expect(parts.allSatisfy { $0.parent == life.span && $0.attributes["reelhaul.task.id"] == "\(id)" })
    #expect(named("submit").count == 1)
    let runs = named("run download")
    #expect(runs.map { $0.attributes["reelhaul.outcome"] } == ["failed", "succeeded"])
    #expect(runs.map { $0.attributes["error.type"] } == ["http_404", nil] && runs[0].error != "")
    #expect(Set(runs.map(\.span)).count == 2)

    let logs = fleet.logs().split(separator: "\n").filter { $0.contains("a run failed") }
    #expect(logs.count == 1 && logs[0].contains(Self.trace) && logs[0].contains(runs[0].span), "\(logs)")
    for topic in ["commands", "events"] {
      let headers = try await fleet.records(of: topic, ["-f", "%h\n"]).map { String(decoding: $0, as: UTF8.self) }
      let own = headers.filter { $0.contains("traceparent=00-\(Self.trace)-\(request.span)-01") }
      #expect(!own.isEmpty && own.allSatisfy { $0.contains("tracestate=v=1") }, "\(topic): \(headers)")
    }
    let metrics = try OTLPReference.items(of: receiver.posts.filter { $0.path == "/v1/metrics" })
    #expect(metrics.contains { $0.name == "reelhaul_tasks_settled_total" && $0.service == "reelhaul-worker" })
    #expect(metrics.contains { $0.name == "reelhaul_workers" && $0.service == "reelhaul-serve" })
    await fleet.stop()
    await receiver.stop()
  }

  @Test("a task without a trace has one with its own id; the command line takes TRACEPARENT; nothing unsampled is sent")
  func ownTraces() async throws {
    let receiver = try await HookReceiver { _, _ in HTTPResponse(200, type: "application/json", Array("{}".utf8)) }
    let fleet = try await TestFleet.start(workers: 1, environment: Self.settings(receiver))
    let (own, quiet) = (UniqueID.make(), UniqueID.make())
    try await fleet.client.submit([TaskSpec(id: own, kind: .noop, source: "noop:")])
    var spec = TaskSpec(id: quiet, kind: .noop, source: "noop:")
    spec.traceparent = String(Self.parent.dropLast()) + "0"
    try await fleet.client.submit([spec])
    let made = try await fleet.run(
      ["submit", "noop", "--wait"], environment: ["TRACEPARENT": Self.parent, "TRACESTATE": "v=2"])
    #expect(made.status == .exited(0), "\(made.output)")
    for id in [own, quiet] { try await fleet.wait(for: id, .succeeded) }
    try await fleet.eventually("their lives have come") {
      try spans(receiver).count { $0.name == "task noop" } >= 2
    }
    let all = try spans(receiver)
    let ownTrace = "\(own)".filter { $0 != "-" }
    #expect(Set(all.map(\.trace)) == [Self.trace, ownTrace])
    #expect(all.first { $0.name == "task noop" && $0.trace == ownTrace }?.parent == "")
    #expect(all.first { $0.name == "task noop" && $0.trace == Self.trace }?.parent == "00f067aa0ba902b7")
    await fleet.stop()
    await receiver.stop()
  }

  @Test("a receiver that is not there slows nothing down, and a wrong setting is refused") func absent() async throws {
    let fleet = try await TestFleet.start(
      workers: 1, environment: ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_BSP_SCHEDULE_DELAY": "50"])
    let id = UniqueID.make()
    try await fleet.client.submit([TaskSpec(id: id, kind: .noop, source: "noop:")])
    try await fleet.wait(for: id, .succeeded)
    try await fleet.eventually("the log says it, once") {
      fleet.logs().split(separator: "\n").count { $0.contains("the receiver of spans does not take them") } == 1
    }
    let worker = try fleet.startWorker(["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"])
    #expect(await worker.wait() == .exited(2))
    #expect(fleet.logs().contains("OTEL_EXPORTER_OTLP_PROTOCOL must be http/json"))
    await fleet.stop()
  }
}
