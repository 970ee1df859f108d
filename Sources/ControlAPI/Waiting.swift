import HTTPServer
import ReelhaulSystem
import TaskCore
import TaskStore

/// Whether a request waits until a worker has applied what it sends.
enum Waiting: Hashable, Sendable {
  /// The answer comes once Kafka has it.
  case sent
  /// The answer comes once it is applied, or at this time.
  case applied(until: BootInstant)

  static let fields = [
    Route.Field(
      name: "wait", help: "`applied`: the answer comes once a worker has applied it, with what became of it.",
      schema: .text(values: ["applied"])),
    Route.Field(
      name: "timeout", help: "With `wait`: after how many seconds the answer comes anyway, with 202; 30 if not given.",
      schema: .integer("", 1...60)),
  ]

  init(_ query: [String: String]) {
    guard query["wait"] != nil else {
      self = .sent
      return
    }
    self = .applied(until: .now + .seconds(query["timeout"].flatMap { Int64($0) } ?? 30))
  }

  /// Asks again, ever less often, until there is an answer or the time is over: then nil. All that wait are asked for
  /// together. Without PostgreSQL there is none: what is waited for has been sent, and is not undone by an error.
  static func poll<Value>(
    until end: BootInstant, on loop: EventLoop, _ ask: () async throws -> Value?
  ) async throws -> Value? {
    var pause = Duration.milliseconds(20)
    while true {
      do {
        if let value = try await ask() { return value }
      } catch is StoreError {}
      let now = BootInstant.now
      guard now < end else { return nil }
      try await loop.sleep(for: min(pause, end - now))
      pause = min(pause * 3 / 2, .milliseconds(500))
    }
  }
}
