import HTTPServer
import ReelhaulSystem
import TaskCore

/// What one client of `/v1/events` gets: server-sent events, each with the cursor of the place behind it.
struct EventFeed: Sendable {
  enum Start: Sendable {
    case now
    case after(EventCursor)
    /// The first event of a task, which was submitted at this time in milliseconds since 1970.
    case task(UniqueID, submittedAt: Int64)
  }

  /// How far a client is: in the topic, and in the ring of the newest events.
  struct Place: Sendable {
    var cursor: EventCursor
    var number: Int
    /// Whether it has had everything of the ring up to this number, so that its cursor is that of the ring.
    var isCurrent = false
  }

  /// The client cannot go on here. It comes back with its last cursor.
  struct Ended: Error {}

  let hub: EventHub
  let client: EventHub.Client
  let stream: HTTPStream
  let filter: EventFilter
  let lookUp: @Sendable ([UniqueID]) async throws -> [UniqueID: TaskTraits]

  /// Bytes that are sent at once. The client reads them before the next are made.
  static let chunk = 32 << 10

  init(
    hub: EventHub, stream: HTTPStream, filter: EventFilter, wantsProgress: Bool,
    lookUp: @escaping @Sendable ([UniqueID]) async throws -> [UniqueID: TaskTraits]
  ) {
    self.hub = hub
    client = EventHub.Client(loop: hub.loop, wantsProgress: wantsProgress)
    self.stream = stream
    self.filter = filter
    self.lookUp = lookUp
  }

  func run(from start: Start) async {
    await hub.join(client)
    do {
      try await send(Array("retry: 1000\n\n".utf8))
      let present = try await pinging { try await begin() }
      var place = present
      switch start {
      case .now: break
      case .after(let cursor):
        if let held = await hub.place(behind: cursor) {
          place = held
        } else {
          place = try await catchUp(cursor, present)
        }
      case .task(let id, let time): place = try await history(of: id, submittedAt: time)
      }
      try await send(Self.text("ready", place.cursor))
      try await follow(place)
    } catch {
      // A broken stream is the client's to open again. Kafka's trouble is worth a word.
      if !(error is Ended), !(error is CancellationError) { _ = stream.send(Self.trouble) }
    }
    await hub.leave(client)
  }

  /// Waits until the topic is open, and returns the place of the present.
  private func begin() async throws -> Place {
    var isTold = false
    while true {
      if let present = await hub.present { return present }
      if await hub.isCut, !isTold {
        isTold = true
        try await send(Self.trouble)
      }
      try await pause()
    }
  }

  /// Sends what comes until the client has gone.
  private func follow(_ start: Place) async throws {
    var place = start
    var isCut = false
    var quiet = BootInstant.now
    while true {
      guard let (next, text) = await hub.next(place, filter, limit: Self.chunk) else {
        // Memory went on without this client, or began anew with the topic.
        guard let present = await hub.present else { throw Ended() }
        if await hub.wasMadeAnew(since: place.number) {
          place = try await gap()
        } else {
          place = try await catchUp(place.cursor, present)
        }
        continue
      }
      place = next
      let samples = try await takeSamples()
      if !text.isEmpty || !samples.isEmpty {
        quiet = .now
        try await send(text + samples)
        continue
      }
      if await hub.isCut != isCut {
        isCut.toggle()
        try await send(isCut ? Self.trouble : Self.text("ready", place.cursor))
      }
      if quiet + hub.settings.ping < .now {
        quiet = .now
        try await send(Self.text("ping", place.cursor))
      }
      try await pause(until: quiet + hub.settings.ping + .milliseconds(1))
    }
  }

  /// Runs `body`, which may send nothing for long. Meanwhile the client gets `ping` with the cursor that it has reached,
  /// so that no proxy takes the connection for a dead one.
  func pinging<Value>(
    _ reached: Lock<EventCursor?> = Lock(nil), _ body: () async throws -> Value
  ) async throws -> Value {
    let timer = hub.loop.timer(after: hub.settings.ping, every: hub.settings.ping) { [stream] in
      // A client with bytes on their way is slow, but not forgotten.
      guard stream.pending == 0 else { return }
      stream.send(reached.withLock { $0 }.map { Self.text("ping", $0) } ?? Self.ping)
    }
    defer { timer.cancel() }
    return try await body()
  }

  func pause(until deadline: BootInstant? = nil) async throws {
    await client.wakeup.sleep(until: deadline ?? .now + hub.settings.ping)
    try Task.checkCancellation()
  }

  /// Tells the client that it has missed events, and lets it go on with the present.
  func gap() async throws -> Place {
    guard let present = await hub.present else { throw Ended() }
    try await send(Self.text("gap", present.cursor))
    return present
  }

  func send(_ bytes: [UInt8]) async throws {
    guard stream.send(bytes), await stream.flush() else { throw Ended() }
  }

  private func takeSamples() async throws -> [UInt8] {
    guard client.wantsProgress else { return [] }
    let samples = client.samples.withLock { samples in
      defer { samples.removeAll(keepingCapacity: true) }
      return samples.compactMap { key, value in
        UniqueID(String(decoding: key, as: UTF8.self)).map { (id: $0, json: value) }
      }
    }.filter { filter.tasks.isEmpty || filter.tasks.contains($0.id) }
    var known: [UniqueID: TaskTraits] = [:]
    if filter.asksForTraits, !samples.isEmpty {
      // A sample that cannot be judged is dropped.
      known = (try? await hub.traits(of: samples.map(\.id), lookUp: lookUp)) ?? [:]
    }
    var text: [UInt8] = []
    for (id, json) in samples where text.count < Self.chunk && filter.admits(known[id]) {
      text += Array("event: progress\ndata: ".utf8) + EventEntry.line(json) + Array("\n\n".utf8)
    }
    return text
  }

  // MARK: Text

  static let trouble = Array("event: trouble\ndata: {}\n\n".utf8)
  private static let ping = Array("event: ping\ndata: {}\n\n".utf8)

  static func write(_ entry: EventEntry, _ cursor: [UInt8], to text: inout [UInt8]) {
    text += "id: ".utf8
    text += cursor
    text += "\ndata: ".utf8
    text += entry.json
    text += "\n\n".utf8
  }

  static func writeGap(_ cursor: EventCursor, to text: inout [UInt8]) { text += Self.text("gap", cursor) }

  static func text(_ name: String, _ cursor: EventCursor) -> [UInt8] {
    Array("id: \(cursor.text)\nevent: \(name)\ndata: {}\n\n".utf8)
  }
}
