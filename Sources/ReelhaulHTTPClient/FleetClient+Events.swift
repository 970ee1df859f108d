import Foundation

extension FleetClient {
  /// Where a stream of events begins.
  public enum EventStart: Sendable {
    /// With the next event.
    case now
    /// With the oldest event that the fleet still has.
    case earliest
    /// Behind the event with this cursor.
    case after(EventCursor)
  }

  /// A place in the stream of all events. Keep it to go on later, in another process too.
  public struct EventCursor: Hashable, Sendable, Codable {
    public let text: String

    public init(_ text: String) { self.text = text }
  }

  /// The events of one task, in their order. It ends with the event after which the task stays as it is. If the
  /// connection breaks, it goes on behind the last event.
  ///
  /// If that event was before the start, the stream ends within half a minute: until then it may still be on its way.
  public func events(of id: UUID, from start: EventStart = .now) -> AsyncThrowingStream<FleetEvent, any Error> {
    Self.stream { yield in
      var hasEnded = false
      var wasKnown = false
      try await follow([("task", id.uuidString.lowercased())], from: start) { change in
        switch change {
        case .connected:
          let task = try await known(id)
          hasEnded = task?.state.isFinal ?? wasKnown
          wasKnown = wasKnown || task != nil
          return true
        case .quiet:
          guard !hasEnded, wasKnown else { return !hasEnded }
          // A token of some queues is not told of a removal: the document that tells the queue is gone.
          hasEnded = try await known(id) == nil
          return true
        case .event(let event, _):
          wasKnown = true
          try await yield(event)
          // The document may be newer than the event.
          guard let task = event.task else { return false }
          // Who retries the task makes more events.
          hasEnded = task.state.isFinal
          return !(hasEnded && event.sequence >= task.sequence)
        case .progress, .gap: return true
        }
      }
    }
  }

  /// The events of all tasks that match, without an end, each with its place in the stream. Of the query only the queues,
  /// kinds and states count.
  ///
  /// Throws ``FleetError/Code/eventsLost`` if the fleet no longer has the events behind a cursor.
  public func events(
    matching query: TaskQuery = .init(), from start: EventStart = .now
  ) -> AsyncThrowingStream<(event: FleetEvent, cursor: EventCursor?), any Error> {
    Self.stream { yield in
      let items = try query.items().filter { ["queue", "kind", "state"].contains($0.0) }
      try await follow(items, from: start) { change in
        guard case .event(let event, let cursor) = change else { return true }
        try await yield((event, cursor))
        return true
      }
    }
  }

  /// How far a task is: at once, then up to four times a second while it runs, and at its end, which ends the stream. It
  /// waits for a task that the fleet has not read yet.
  public func progress(of id: UUID) -> AsyncThrowingStream<TaskProgress, any Error> {
    Self.stream { yield in
      _ = try await follow(id) { task in try await yield(TaskProgress(task)) }
    }
  }

  /// Follows a task to its end and tells the delegate. Returns the task as it ended.
  @discardableResult
  public func follow(_ id: UUID, delegate: any FleetTaskDelegate) async throws -> FleetTask {
    var last: FleetTask?
    let task = try await follow(id) { task in
      if last?.state != task.state { delegate.task(task, changedFrom: last?.state) }
      delegate.task(task, progressed: TaskProgress(task))
      last = task
    }
    delegate.taskEnded(task)
    return task
  }

  /// Waits for the end of a task.
  public func end(of id: UUID) async throws -> FleetTask {
    try await follow(id) { _ in }
  }

  /// A task as it is; nil if the fleet does not know it.
  private func known(_ id: UUID) async throws -> FleetTask? {
    do {
      return try await task(id)
    } catch let error as FleetError where error.code == .notFound || error.status == 404 {
      return nil
    }
  }

  private static let removed = FleetError(.notFound, "the task was removed")

  /// Calls `body` with each new state of a task until its end.
  private func follow(_ id: UUID, _ body: (FleetTask) async throws -> Void) async throws -> FleetTask {
    var task: FleetTask?
    let items: [(String, String?)] = [("task", id.uuidString.lowercased()), ("progress", "true")]
    try await follow(items, from: .now, skipsGaps: true) { change in
      switch change {
      case .connected, .gap:
        // Only now, so that nothing happens between this state and the first event.
        guard let found = try await known(id) else {
          guard task == nil else { throw Self.removed }
          return true  // Kafka has it, and no worker has read it yet.
        }
        task = found
      case .quiet:
        // A token of some queues is not told of a removal: the document that tells the queue is gone.
        guard task != nil else { return true }
        guard let found = try await known(id) else { throw Self.removed }
        task = found
      case .event(let event, _):
        guard event.sequence >= task?.sequence ?? 0 else { return true }
        guard let next = event.task else { throw Self.removed }
        task = next
      case .progress(let sample):
        guard var next = task, !next.state.isFinal, sample.epoch >= next.epoch ?? 0 else { return true }
        (next.bytesDone, next.bytesTotal) = (sample.bytesDone, sample.bytesTotal ?? next.bytesTotal)
        (next.rate, next.eta) = (sample.rate, sample.eta)
        task = next
      }
      if let task { try await body(task) }
      return !(task?.state.isFinal ?? false)
    }
    guard let task else { throw FleetError(.notFound, "there is no task \(id)") }
    return task
  }
}

/// Is told of a task that ``FleetClient/follow(_:delegate:)`` follows. The calls come one after the other.
public protocol FleetTaskDelegate: Sendable {
  func task(_ task: FleetTask, progressed progress: TaskProgress)
  /// `former` is nil at the first call.
  func task(_ task: FleetTask, changedFrom former: FleetTask.State?)
  func taskEnded(_ task: FleetTask)
}

extension FleetTaskDelegate {
  public func task(_ task: FleetTask, progressed progress: TaskProgress) {}
  public func task(_ task: FleetTask, changedFrom former: FleetTask.State?) {}
  public func taskEnded(_ task: FleetTask) {}
}
