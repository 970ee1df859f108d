import Glibc
import ReelhaulKafka
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

/// Runs `reelhaul batch` against a broker without workers.
@Suite struct BatchTests {
  private static let good = #"{"kind":"noop","source":"noop://host/"}"#

  /// The output of the command, its exit status, and the number of commands that the broker has.
  private struct Outcome {
    var status: ReelhaulSystem.ExitStatus
    var output: String
    var commands: Int
  }

  /// Runs `reelhaul batch` with `lines` from a file or a pipe, or as `script` says.
  private func batch(
    _ lines: [String], piped: Bool = false, script: String? = nil, _ options: [String] = [],
    environment: [String: String] = [:]
  ) async throws -> Outcome {
    let directory = try TemporaryDirectory(prefix: "reelhaul-batch")
    let plan = TopicPlan(prefix: "batch.", partitions: 4)
    let broker = try DevelopmentBroker(topics: plan.topics)
    try write(lines.map { $0 + "\n" }.joined(), to: "\(directory.path)/lines")
    var child = ChildProcess.Options()
    child.environment = [
      "REELHAUL_KAFKA": broker.bootstrap, "REELHAUL_TOPIC_PREFIX": plan.prefix, "REELHAUL_CONFIG": "",
    ].merging(environment) { $1 }
    child.stdout = "\(directory.path)/out"
    child.stderr = child.stdout
    let command = [TestFleet.binary, "batch"] + options
    let script = "file=$1; shift; " + (script ?? (piped ? #"cat "$file" | "$@" -"# : #"exec "$@" "$file""#))
    let process = try ChildProcess("bash", ["-c", script, "bash", "\(directory.path)/lines"] + command, child)
    let status = await process.wait()
    let reader = try await KafkaReader.open(
      KafkaConfiguration(bootstrap: broker.bootstrap), topics: [plan.commands], from: .beginning)
    let end = try KafkaProducer(KafkaConfiguration(bootstrap: broker.bootstrap))
    try await end.sendAll((0..<4).map { KafkaMessage(topic: plan.commands, key: nil, value: nil, partition: $0) })
    var (commands, ends) = (0, 0)
    while ends < 4, let records = try await reader.next() {
      ends += records.count { $0.value == nil }
      commands += records.count { $0.value != nil }
    }
    await end.close()
    await reader.close()
    await broker.close()
    let output = String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self)
    return Outcome(status: status, output: output, commands: commands)
  }

  private func write(_ text: String, to path: String) throws {
    var text = text
    let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT)
    try text.withUTF8 { try file.write(UnsafeRawBufferPointer($0), at: 0) }
  }

  @Test("batch --strict sends nothing unless every line is correct", arguments: [false, true])
  func strictSendsNothingUnlessEveryLineIsGood(piped: Bool) async throws {
    let lines = Array(repeating: Self.good, count: 5000)
    let bad = try await batch(lines + ["nonsense", Self.good, "{}"], piped: piped, ["--strict"])
    #expect(bad.status == .exited(2))
    #expect(bad.output.contains("line 5001: ") && bad.output.contains("line 5003: "), "all are named")
    #expect(bad.output.contains("0 lines were sent, 2 are bad"))
    #expect(bad.commands == 0)

    let good = try await batch(lines, piped: piped, ["--strict"])
    #expect(good.status == .exited(0))
    #expect(good.commands == 5000)
    #expect(Set(good.output.split(separator: "\n")).count == 5000, "an id for each line")
  }

  @Test("batch prints the ids in the order of the lines")
  func idsComeInTheOrderOfTheLines() async throws {
    let ids = (0..<9000).map { number in
      "01990000-0000-7000-8000-\(String(repeating: "0", count: 12 - String(number).count))\(number)"
    }
    let outcome = try await batch(ids.map { #"{"id":"\#($0)","kind":"noop","source":"noop://host/"}"# }, piped: true)
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.split(separator: "\n").map(String.init) == ids)
    #expect(outcome.commands == 9000)
  }

  @Test("batch names the lines that Kafka did not acknowledge")
  func linesThatKafkaDoesNotAcknowledgeAreNamed() async throws {
    let long = #"{"kind":"noop","source":"noop://host/","labels":{"title":"\#(String(repeating: "x", count: 2000))"}}"#
    let id = UniqueID.random()
    let named = long.replacing(##"{"kind"##, with: "{\"id\":\"\(id)\",\"kind")
    let outcome = try await batch(
      [long, "", Self.good, long, named, Self.good], environment: ["REELHAUL_KAFKA_MESSAGE_MAX_BYTES": "1000"])
    #expect(outcome.status == .exited(1))
    #expect(outcome.output.contains("lines 1, 4-5: not acknowledged by Kafka: "), "\(outcome.output)")
    // Whoever sends them again with their ids makes no second task.
    #expect(outcome.output.matches(of: /line [14]: its id is [0-9a-f-]{36}\n/).count == 2, "\(outcome.output)")
    #expect(outcome.output.contains("line 5: its id is \(id)\n"), "\(outcome.output)")
    let printed = outcome.output.split(separator: "\n").compactMap { UniqueID(String($0)) }
    #expect(printed.count == 2, "the ids of the others alone: \(outcome.output)")
    #expect(outcome.commands == 2)
  }

  @Test(
    "batch sends all lines even if nobody reads their ids, or if these cannot be written",
    arguments: [(#""$@" "$file" | head -n 1; exit ${PIPESTATUS[0]}"#, 0), (#""$@" "$file" >/dev/full"#, 1)]
      as [(String, Int32)])
  func sendsAllWhoeverReads(_ script: String, _ code: Int32) async throws {
    let outcome = try await batch(Array(repeating: Self.good, count: 20_000), script: script)
    #expect(outcome.commands == 20_000)
    #expect(outcome.status == .exited(code))
    #expect(outcome.output.contains("No space left on device") == (code == 1), "\(outcome.output)")
  }

  @Test("a batch that is ended by a signal prints the ids of what was sent, and how many lines these are")
  func aSignalEndsItInOrder() async throws {
    let script = #"""
      place=${file%/*}; mkfifo "$place/in"; exec 3<>"$place/in"
      "$@" - <&3 & batch=$!
      cat "$file" >&3
      until [ "$(wc -l <"$place/out")" -ge 3 ]; do sleep 0.1; done
      printf '{"kind":' >&3
      kill -TERM $batch; wait $batch
      """#
    let outcome = try await batch(Array(repeating: Self.good, count: 3), script: script)
    #expect(outcome.status == .exited(143), "\(outcome.output)")
    #expect(outcome.output.contains("Interrupted: 3 lines were sent.\n"), "\(outcome.output)")
    #expect(outcome.commands == 3)
  }

  @Test("batch names the address that does not answer, and the reason")
  func saysWhereNobodyAnswersAndWhy() async throws {
    let outcome = try await batch([Self.good], environment: ["REELHAUL_KAFKA": "127.0.0.1:1"])
    #expect(outcome.status == .exited(3))
    #expect(outcome.output.contains("127.0.0.1:1"), "where: \(outcome.output)")
    #expect(outcome.output.contains("Connection refused"), "why: \(outcome.output)")
  }

  @Test("batch says that the topic for commands does not exist, and does not wait for it")
  func tellsOfAMissingTopic() async throws {
    let outcome = try await batch([Self.good], environment: ["REELHAUL_TOPIC_PREFIX": "other."])
    #expect(outcome.status == .exited(3))
    #expect(outcome.output.contains("Kafka has no topic other.commands"), "\(outcome.output)")
  }

  @Test(
    "a topic prefix that Kafka would refuse is a usage error of every command",
    arguments: [
      ["batch", "-"], ["download", "http://a.example/"], ["worker"], ["migrate"], ["up", "--topic-prefix", "a b."],
      ["doctor"],
    ])
  func aTopicPrefixThatKafkaRefusesIsAUsageError(arguments: [String]) async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-prefix")
    var options = ChildProcess.Options()
    options.environment = [
      "REELHAUL_KAFKA": "127.0.0.1:1", "REELHAUL_POSTGRES": "postgres://127.0.0.1:1/x", "REELHAUL_CONFIG": "",
      "REELHAUL_TOPIC_PREFIX": "a b.",
    ]
    options.workingDirectory = directory.path
    options.stdout = "\(directory.path)/out"
    options.stderr = options.stdout
    let status = await (try ChildProcess(TestFleet.binary, arguments, options)).wait()
    let output = String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self)
    let setting = arguments[0] == "up" ? "--topic-prefix" : "--topic-prefix (REELHAUL_TOPIC_PREFIX)"
    #expect(output.contains("\(setting): the topic prefix \"a b.\" has characters"), "\(output)")
    // The doctor also checks the rest, so its exit code is another one.
    if arguments != ["doctor"] { #expect(status == .exited(2), "\(output)") }
  }
}
