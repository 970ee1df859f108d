import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The messages of a real fleet against docs/schemas, and its web hooks.
@Suite struct MessageSchemaTests {
  @Test("every message on the topics of a fleet, and every web hook, fits its schema") func messages() async throws {
    let receiver = try await HookReceiver()
    let fleet = try await TestFleet.start(workers: 1)
    fleet.origin.serve("/film.mp4", OriginFile(seed: 1, size: 20_000_000))
    let hook = "http://127.0.0.1:\(receiver.port)/hook"
    let film = try await fleet.download("/film.mp4") { spec in
      spec.rate = 10_000_000
      spec.notify = hook
      spec.labels = ["title": "a film"]
    }
    let missing = try await fleet.download("/missing.mp4") { $0.retry.maxAttempts = 1 }
    try await fleet.wait(for: film, .succeeded)
    try await fleet.wait(for: missing, .failed)
    // As the API and the command line send them.
    try await fleet.client.send(
      [ControlAction.prioritize(5), .remove(files: false)].map {
        .control(.init(id: .random(), taskID: missing, action: $0, actor: "cli:anna"))
      })
    try await fleet.eventually("the task is removed") { try await fleet.store.task(missing) == nil }
    try await eventually("the hook has everything") {
      receiver.posts.contains { $0.type == "reelhaul.task.succeeded" }
    }
    _ = try await fleet.events()
    var values: [(schema: String, json: [UInt8])] = receiver.posts.map { ("web-hook", $0.body) }
    for (topic, schema) in [("commands", "command"), ("events", "event"), ("tasks", "task"), ("progress", "progress")] {
      let records = try await fleet.records(of: topic).filter { !$0.isEmpty && $0 != Array("NULL".utf8) }
      #expect(!records.isEmpty, "\(topic)")
      values += records.map { (schema, $0) }
    }
    for (value, problem) in zip(values, try MessageSchemas.problems(values)) where problem != nil {
      Issue.record("\(value.schema) \(String(decoding: value.json, as: UTF8.self)): \(problem ?? "")")
    }
    #expect(receiver.posts.map(\.sequence) == Array(1...receiver.posts.count))
    await fleet.stop()
    await receiver.stop()
  }
}
