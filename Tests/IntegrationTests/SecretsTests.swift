import Glibc
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

/// A secret reaches only the origin that it is for.
@Suite struct SecretsTests {
  @Test("signatures and credentials appear in no log, event, document or output")
  func signaturesAndCredentialsAreShownNowhere() async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/credentials.json"
    let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    try Array("{}".utf8).withUnsafeBytes { try file.write($0, at: 0) }
    let fleet = try await TestFleet.start(
      workers: 1, environment: ["REELHAUL_LOG_LEVEL": "debug", "REELHAUL_CREDENTIALS": path])
    let topics = TopicPlan(prefix: fleet.prefix)
    let reader = try await KafkaReader.open(
      try KafkaConfiguration(bootstrap: fleet.bootstrap, properties: [:]),
      topics: [topics.events, topics.tasks, topics.progress], from: .beginning)
    let host = "127.0.0.1:\(fleet.origin.port)"
    let text = #"{"studio": {"hosts": ["\#(host)"], "bearer": "hidden-token", "allowHTTP": true}}"#
    try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    fleet.origin.serve("/film.mp4", OriginFile(seed: 3, size: 2_000_000))
    fleet.origin.always("/gone.mp4", .answer(404))
    fleet.origin.always("/busy.mp4", .answer(503, headers: [("Retry-After", "60")]))
    fleet.origin.always("/closed.mp4", .answer(401))
    fleet.origin.always("/away.mp4", .redirect(to: "http://10.1.2.3/x?signature=hidden-signature"))
    var output = ""
    for name in ["film", "gone", "busy", "closed", "away"] {
      let id = UniqueID.make()
      let url = fleet.origin.url("/\(name).mp4?signature=hidden-signature")
      output += try await fleet.run(["download", url, "--id", "\(id)", "--credential", "studio"]).output
      try await fleet.wait(for: id, "an end or an error") { $0.state.isFinal || $0.error != nil }
      for command in [["show", "\(id)"], ["show", "\(id)", "--json"], ["pause", "\(id)"]] {
        output += try await fleet.run(command).output
      }
    }
    for command in [["list"], ["list", "--json"], ["download", "http://u:hidden-password@127.0.0.1/a"], ["doctor"]] {
      output += try await fleet.run(command).output
    }
    // This task's last event is the last of all, so everything before it has been published too.
    let last = try await fleet.download("/film.mp4") { $0.ifExists = .skip }
    var messages = ""
    read: while let records = try await reader.next() {
      for record in records {
        let text = String(decoding: record.value ?? [], as: UTF8.self)
        messages += text
        if record.topic == topics.events, text.contains("\(last)"), text.contains("\"succeeded\"") { break read }
      }
    }
    #expect(fleet.origin.exchanges("/film.mp4").contains { $0.request["authorization"] == "Bearer hidden-token" })
    #expect(messages.contains("http_404") && output.contains("http_404") && output.contains("signature=***"))
    for (what, text) in [("output", output), ("messages", messages), ("logs", fleet.logs())] {
      for line in text.split(separator: "\n") where line.contains("hidden-") { Issue.record("\(what): \(line)") }
    }
    await reader.close()
    await fleet.stop()
  }
}
