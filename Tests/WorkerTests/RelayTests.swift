import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore
import TestKit
import Testing
import WorkerCore

/// Rows leave the outbox only after Kafka has their events.
@Suite struct RelayTests {
  @Test("events that Kafka has not acknowledged stay in the outbox, and are published again")
  func lostRound() async throws {
    let bench = try WorkerBench()
    let spec = noop()
    try await bench.run {
      bench.sink.goAway()
      bench.submit([spec])
      try await eventually("a round waits for its acknowledgement") { bench.sink.isWaitedFor }
      try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      #expect(try await bench.store.pendingRows()?.lowerBound == 1, "the round that is under way is still there")
      // The round is lost, together with all waiting messages.
      bench.sink.close()
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    try expectHistory(of: spec.id, in: bench)
  }

  @Test("rounds are decoded on the relay's own thread: neither on the loop, nor where handlers may block all threads")
  func ownThread() async throws {
    let bench = try WorkerBench()
    let spec = noop()
    try await bench.run {
      bench.submit([spec])
      try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    #expect(bench.store.relayThreads == ["relay-0"])
  }

  @Test("events of rounds that Kafka refuses are published once it takes them")
  func refusedRounds() async throws {
    let bench = try WorkerBench()
    let spec = noop()
    try await bench.run {
      bench.sink.refuse(KafkaError(code: .timedOut, message: "nobody answers"))
      bench.submit([spec])
      try await eventually("several rounds are refused") { bench.sink.refused >= 3 }
      try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      #expect(try await bench.store.pendingRows()?.lowerBound == 1)
      bench.sink.refuse(nil)
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    try expectHistory(of: spec.id, in: bench)
  }

  @Test("a worker whose events Kafka refuses for good leaves the lead to another one")
  func refusedWorker() async throws {
    let bench = try WorkerBench()
    let invalidTimestamp = KafkaError.Code(rawValue: 32)
    try await bench.run {
      bench.sink.refuse(KafkaError(code: invalidTimestamp, message: "the clocks differ"))
      bench.submit([noop()])
      try await eventually("a round is refused") { bench.sink.refused > 0 }
      let other = try await bench.store.register(
        WorkerRegistration(boot: .random(), host: "b", pid: 1, leaseSeconds: 60, kinds: [], volumes: [:]))
      try await eventually("another worker leads") { try await bench.store.lead(other, seconds: RelayPlanner.term) }
      bench.sink.refuse(nil)
    }
  }

  @Test("events of a task that is too long for Kafka are published without its long fields, and hold up no others")
  func aTaskThatIsTooLong() async throws {
    let bench = try WorkerBench()
    var long = noop()
    long.labels = ["note": String(repeating: "a", count: 4000)]
    long.parameters = Array("\"\(String(repeating: "a", count: 60_000))\"".utf8)
    let short = noop()
    bench.sink.limitValues(to: 50_000)
    try await bench.run {
      bench.submit([long, short])
      for spec in [long, short] {
        try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      }
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    for spec in [long, short] { try expectHistory(of: spec.id, in: bench) }
    for message in bench.sink.messages(to: bench.topics.tasks) {
      let isLong = message.key == Array(long.id.description.utf8)
      #expect(message.headers.contains { $0.name == "task-cut" } == isLong)
      let spec = try TaskDocumentJSON.decode(message.value ?? []).spec
      #expect(spec.labels.isEmpty && spec.parameters == nil)
    }
  }

  @Test("a task that is too long for Kafka costs no other task of its round a field")
  func othersAreNotCut() async throws {
    let bench = try WorkerBench()
    var (long, other) = (noop(), noop())
    // As JSON, a quote is two bytes.
    for number in 0..<15 { long.labels["label-\(number)"] = String(repeating: "\"", count: 4096) }
    other.parameters = Array("\"\(String(repeating: "a", count: 60_000))\"".utf8)
    long.parameters = other.parameters
    bench.sink.limitValues(to: 140_000)
    try await bench.run {
      bench.submit([long, other])
      for spec in [long, other] {
        try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      }
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    for spec in [long, other] { try expectHistory(of: spec.id, in: bench) }
    for message in bench.sink.messages(to: bench.topics.tasks) {
      let isLong = message.key == Array(long.id.description.utf8)
      #expect(message.headers.contains { $0.name == "task-cut" } == isLong)
      let kept = try TaskDocumentJSON.decode(message.value ?? []).spec.parameters
      #expect(kept == (isLong ? nil : other.parameters))
    }
  }

  @Test("the error of a task that is too long for Kafka is cut, and holds up no others")
  func anErrorThatIsTooLong() async throws {
    let bench = try WorkerBench()
    let (long, other) = (download(), noop())
    bench.handler.end(
      long.id,
      with: .failed(
        TaskFailure(code: .sourceInvalid, message: String(repeating: "é", count: 2 << 20), class: .fail)))
    try await bench.run {
      bench.submit([long])
      try await eventually("the task is over") { try await bench.state(long.id) == .failed }
      bench.submit([other])
      try await eventually("the other task is over") { try await bench.state(other.id) == .succeeded }
      try await eventually("the outbox is empty") { try await bench.store.pendingRows() == nil }
    }
    try expectHistory(of: other.id, in: bench)
    let snapshot = bench.sink.messages(to: bench.topics.tasks).last { $0.key == Array(long.id.description.utf8) }
    let error = try #require(try TaskDocumentJSON.decode(snapshot?.value ?? []).error)
    #expect(error.code == .sourceInvalid && error.message == String(repeating: "é", count: 500))
  }

  /// Checks that every number from 1 on exists, and that the last snapshot is the newest.
  private func expectHistory(of task: UniqueID, in bench: WorkerBench) throws {
    let events = try bench.sink.messages(to: bench.topics.events).map { try TaskEventJSON.decode($0.value ?? []) }
      .filter { $0.taskID == task }
    let numbers = events.map(\.sequence)
    #expect(numbers.first == 1 && events.last?.kind == .succeeded)
    #expect(Set(numbers) == Set(1...(numbers.max() ?? 1)), "no event is lost")
  }
}
