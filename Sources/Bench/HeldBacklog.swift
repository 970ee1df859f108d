import CommandLineKit
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TaskStore

/// Queued no-op tasks of one fleet, and how fast its workers end them. While the fleet rests, its total limit is 0.
actor HeldBacklog {
  private static let batch = 1000

  private let store: any TaskStore
  /// The last task of each batch that has not ended, oldest batch first.
  private var pending: [UniqueID] = []
  private var ended = 0
  private var isOver = false

  init(_ store: any TaskStore) {
    self.store = store
  }

  /// A task that waits for long.
  var newest: UniqueID { pending.last ?? .make() }

  /// Submits tasks, and returns once their events are published.
  func load(_ count: Int) async throws {
    try await store.setLimit(.total, name: "", to: 0)
    for _ in 0..<count / Self.batch { try await submit() }
    try await rest()
  }

  /// Lets the workers run, and calls `body` once they have ended the first batch. With `refills`, each batch that ends
  /// is replaced. Returns the tasks ended per second during `body`.
  func whileDraining<Result: Sendable>(
    refills: Bool = true, _ body: @Sendable () async throws -> Result
  ) async throws -> (result: Result, rate: Double) {
    try await store.setLimit(.total, name: "", to: nil)
    isOver = false
    let before = ended
    async let following: Void = follow(refills)
    while ended == before, !isOver { try await Task.sleep(for: .milliseconds(5)) }
    if ended == before {
      try await following
      throw WorkError("no tasks wait that the workers could end")
    }
    let (start, first) = (Clocks.boottime(), ended)
    let result = try await body()
    let rate = Double((ended - first) * Self.batch) / (Double(Clocks.boottime() - start) / 1e9)
    isOver = true
    try await following
    try await store.setLimit(.total, name: "", to: 0)
    try await rest()
    return (result, rate)
  }

  /// Tasks of a lane end in order, so the last task of a batch stands for all.
  private func follow(_ refills: Bool) async throws {
    defer { isOver = true }
    while !isOver, let last = pending.first {
      guard try await store.states(of: [last])[last] == .succeeded else {
        try await Task.sleep(for: .milliseconds(5))
        continue
      }
      pending.removeFirst()
      ended += 1
      if refills { try await submit() }
    }
  }

  private func submit() async throws {
    let specs = (0..<Self.batch).map { number in
      TaskSpec(id: .make(), kind: .noop, source: "noop://host-\(number % 4)/", queue: "queue-\(number % 4)")
    }
    _ = try await store.apply(specs.map { .submit($0) })
    pending.append(specs[specs.count - 1].id)
  }

  /// Waits until nothing runs and all events are published.
  private func rest() async throws {
    while true {
      let running = try await store.limits().first { $0.scope == .total }?.running
      if running == 0, try await store.pendingRows() == nil { return }
      try await Task.sleep(for: .milliseconds(20))
    }
  }
}
