import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FleetClient {
  /// What a stream of events tells.
  enum Change {
    /// From here on no event is missed: at first, and again after each break.
    case connected
    case event(FleetEvent, EventCursor?)
    case progress(ProgressSample)
    /// There was nothing for a while since the stream was connected: all that had happened before has come.
    case quiet
    /// The fleet no longer has all events behind the last one.
    case gap
  }

  struct ProgressSample: Decodable {
    var taskId: UUID
    var epoch: Int
    var bytesDone: Int64
    var bytesTotal: Int64?
    var rate: Int64?
    var eta: Int64?
  }

  /// The cursor before all events.
  private static let beginning = "AQA"

  /// Reads events until `body` returns false. Connects again after every break, as long as there are no more failures in
  /// a row than attempts.
  ///
  /// Throws ``FleetError/Code/eventsLost`` where the fleet has lost events that follow a cursor, unless `body` needs no
  /// event to know what is: `skipsGaps`.
  func follow(
    _ query: [(String, String?)], from start: EventStart, skipsGaps: Bool = false,
    _ body: (Change) async throws -> Bool
  ) async throws {
    var parser = ServerSentEventParser()
    var cursor: String?
    switch start {
    case .now: break
    // Of one task the server knows where it begins.
    case .earliest: cursor = query.contains { $0.0 == "task" } ? nil : Self.beginning
    case .after(let known): cursor = known.text
    }
    var failures = 0
    // Before all events there is a gap wherever the topic begins.
    var isBehindEvent = if case .after = start { true } else { false }
    while true {
      var isConnected = false
      do {
        parser = ServerSentEventParser(lastID: cursor)
        var query = query
        if cursor == nil, case .earliest = start { query.append(("from", "start")) }
        var request = request("GET", ["v1", "events"], query: query)
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        if let cursor { request.setValue(cursor, forHTTPHeaderField: "Last-Event-ID") }
        for try await piece in StreamingExchange.pieces(of: request, timeout: configuration.timeout) {
          for event in try parser.read(piece) {
            failures = 0
            // The parser may have read the id of the next event, which has not come yet.
            cursor = event.id
            if event.name == "trouble" { isConnected = false }
            guard let change = try change(event) else { continue }
            switch change {
            case .event: isBehindEvent = true
            case .connected: (isConnected, isBehindEvent) = (true, true)
            // Otherwise the server may still look for events, or cannot read them.
            case .quiet where !isConnected: continue
            default: break
            }
            if case .gap = change, isBehindEvent, !skipsGaps {
              throw FleetError(.eventsLost, "the fleet no longer has the events behind this cursor")
            }
            guard try await body(change) else { return }
          }
        }
        try Task.checkCancellation()
        // A server that ends says so by ending the stream.
        failures += 1
        if failures >= configuration.attempts { throw FleetError(.unreachable, "the server ends every stream at once") }
      } catch is ServerSentEventParser.TooLong {
        throw FleetError(.unreadableAnswer, "the stream is not one of a fleet: an event is too long")
      } catch let error as FleetError {
        failures += 1
        guard error.isRetryable, failures < configuration.attempts else { throw error }
        try await rest(after: failures, asked: error.retryAfter)
        continue
      }
      try await rest(after: max(failures, 1), asked: parser.retry)
    }
  }

  private func change(_ event: ServerSentEvent) throws -> Change? {
    do {
      switch event.name {
      case "progress":
        return .progress(try Self.decoder().decode(ProgressSample.self, from: Data(event.data.utf8)))
      case "gap": return .gap
      case "ready": return .connected
      case "ping": return .quiet
      case "message":
        let cursor = event.id.map { EventCursor($0) }
        return .event(try Self.decoder().decode(FleetEvent.self, from: Data(event.data.utf8)), cursor)
      default: return nil
      }
    } catch {
      throw FleetError(.unreadableAnswer, "an event is not one that this client understands: \(error)")
    }
  }

  /// How many elements of a stream may wait for its reader.
  static let mostUnread = 256

  /// A stream of what `body` yields. It ends with `body`, which ends when nobody reads the stream any more. If the reader
  /// does not keep up, `body` waits: then the bytes wait in ``StreamingExchange``, which bounds them.
  static func stream<Element: Sendable>(
    _ body: @escaping @Sendable (@escaping @Sendable (Element) async throws -> Void) async throws -> Void
  ) -> AsyncThrowingStream<Element, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingOldest(mostUnread)) { continuation in
      let task = Task {
        do {
          try await body { element in
            while case .dropped = continuation.yield(element) { try await Task.sleep(for: .milliseconds(20)) }
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
