import Foundation

/// A task as the fleet tells of it.
public struct FleetTask: Decodable, Sendable, Identifiable {
  /// An open set: a newer server may have more.
  public struct State: RawRepresentable, Hashable, Sendable, Decodable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    public var description: String { rawValue }

    public static let blocked = State(rawValue: "blocked")
    public static let queued = State(rawValue: "queued")
    public static let running = State(rawValue: "running")
    public static let publishing = State(rawValue: "publishing")
    public static let succeeded = State(rawValue: "succeeded")
    public static let paused = State(rawValue: "paused")
    public static let canceled = State(rawValue: "canceled")
    public static let failed = State(rawValue: "failed")

    /// Whether the task stays in it unless somebody retries it.
    public var isFinal: Bool { [.succeeded, .canceled, .failed].contains(self) }
  }

  public struct Failure: Decodable, Hashable, Sendable {
    /// Such as `http_404`, or the code of your own handler.
    public var code: String
    public var message: String
    /// Whether the fleet tries, or would try, the task again.
    public var retryable: Bool
  }

  public var id: UUID
  public var kind: String
  public var state: State
  public var priority: Int
  public var queue: String
  /// The values in the query of a URL are left out.
  public var source: String
  public var destination: String?
  public var bytesDone: Int64
  public var bytesTotal: Int64?
  /// Bytes a second, while it runs.
  public var rate: Int64?
  /// Seconds, while it runs and its size is known.
  public var eta: Int64?
  public var attempt: Int
  public var maxAttempts: Int
  /// The last worker that ran it.
  public var worker: UUID?
  /// How often a worker has taken it.
  public var epoch: Int?
  /// The number of its last event.
  public var sequence: Int
  public var createdAt: Date
  public var startedAt: Date?
  public var finishedAt: Date?
  /// When it runs next, while it waits for a time.
  public var runAt: Date?
  /// By algorithm, in hexadecimal digits.
  public var digest: [String: String]?
  public var error: Failure?
  public var after: [UUID]
  public var labels: [String: String]
  public var parameters: JSONValue?
  public var output: JSONValue?
  /// Why it waits; only ``FleetClient/task(_:)`` and lists tell.
  public var waits: String?
  /// What to do about its failure; only ``FleetClient/task(_:)`` tells.
  public var advice: String?

  /// 0…1; nil if the size is not known.
  public var fraction: Double? { TaskProgress(self).fraction }

  /// The output as the type that its handler returned.
  public func output<Output: Decodable>(as type: Output.Type) throws -> Output {
    do {
      return try FleetClient.decoder().decode(type, from: FleetClient.encode(output ?? .null))
    } catch {
      throw FleetError(.unreadableAnswer, "the output does not fit \(type): \(error)")
    }
  }
}

/// How far a task is.
public struct TaskProgress: Hashable, Sendable {
  public var task: UUID
  public var state: FleetTask.State
  public var bytesDone: Int64
  public var bytesTotal: Int64?
  /// Bytes a second.
  public var rate: Int64?
  /// Seconds.
  public var eta: Int64?

  init(_ task: FleetTask) {
    (self.task, state, bytesDone, bytesTotal) = (task.id, task.state, task.bytesDone, task.bytesTotal)
    (rate, eta) = (task.rate, task.eta)
  }

  /// 0…1; nil if the size is not known.
  public var fraction: Double? {
    guard let bytesTotal else { return nil }
    return bytesTotal == 0 ? (state == .succeeded ? 1 : 0) : min(1, max(0, Double(bytesDone) / Double(bytesTotal)))
  }
}

/// A change of a task's state.
public struct FleetEvent: Decodable, Sendable, Identifiable {
  /// Equal wherever and however often the event is published.
  public var id: UUID
  public var taskId: UUID
  /// Events of one task have rising numbers.
  public var sequence: Int
  /// `submitted`, `started`, `succeeded`, `failed` …
  public var type: String
  public var at: Date
  /// The task when the event was published; nil if it has been removed.
  public var task: FleetTask?
  /// Who caused it, if that is known.
  public var actor: String?
}
