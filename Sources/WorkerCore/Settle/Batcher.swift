import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Gathers the writes of many tasks into few calls. One call is in flight, and items that come meanwhile go together
/// in the next one. An item with patience may wait for others. Each caller waits for its own answer.
///
/// If the store cannot be reached, the call is repeated until the fence of the caller's lease has closed. An item that
/// the store refuses fails alone: its batch is halved until the item is found.
package actor Batcher<Item: Sendable, Answer: Sendable> {
  package typealias Write = @Sendable ([Item]) async throws -> [Answer]

  private struct Entry {
    var item: Item
    var fence: Fence
    var caller: CheckedContinuation<Answer, any Error>
  }

  private let name: String
  private let limit: Int
  private let loop: EventLoop
  private let log: Logger
  private let write: Write
  private var waiting: [Entry] = []
  private var isWriting = false
  /// Whether some item must not wait any longer.
  private var isDue = false
  /// Ends the patience of those that wait.
  private var timer: Task<Void, any Error>?
  private var outage = Outage()
  private var backoff = Backoff(base: .milliseconds(20), limit: .milliseconds(500), seed: .random(in: 0 ... .max))

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// One call has at most `limit` items. `name` names the written items in the log.
  package init(_ name: String, limit: Int, loop: EventLoop, log: Logger, write: @escaping Write) {
    self.name = name
    self.limit = limit
    self.loop = loop
    self.log = log
    self.write = write
  }

  /// Writes `item` while `fence` is open. Cancellation does not interrupt it, because a stopping task still has to
  /// write. Others may join it for up to `patience`; one without patience takes all that wait with it.
  ///
  /// Throws ``OwnershipLost`` once the fence is closed, or ``StoreError`` if the store refuses this item.
  package func submit(_ item: Item, fence: Fence, patience: Duration = .zero) async throws -> Answer {
    try await withCheckedThrowingContinuation { caller in
      waiting.append(Entry(item: item, fence: fence, caller: caller))
      if patience > .zero { wait(for: patience) } else { begin() }
    }
  }

  private func wait(for patience: Duration) {
    guard timer == nil else { return }
    timer = loop.task { [loop] in
      try await loop.sleep(for: patience)
      await self.begin()
    }
  }

  private func begin() {
    isDue = true
    guard !isWriting else { return }
    isWriting = true
    // A separate task starts after the callers that are ready now, so the first call carries the items of all of them.
    loop.task { await self.writeAll() }
  }

  /// For tests.
  var waitingCount: Int { waiting.count }

  private func writeAll() async {
    while isDue {
      timer?.cancel()
      timer = nil
      let batch = Array(waiting.prefix(limit))
      waiting.removeFirst(batch.count)
      isDue = !waiting.isEmpty
      await write(batch)
    }
    isWriting = false
  }

  private func write(_ batch: [Entry]) async {
    let batch = Self.open(batch)
    var plan = Bisection(count: batch.count)
    while let range = plan.current {
      let entries = batch[range]
      guard entries.contains(where: { $0.fence.isOpen }) else {
        for entry in entries { entry.caller.resume(throwing: OwnershipLost()) }
        plan.accept()
        continue
      }
      do {
        let answers = try await write(entries.map(\.item))
        backoff.reset()
        outage.recovered()
        for (entry, answer) in zip(entries, answers) { entry.caller.resume(returning: answer) }
        plan.accept()
      } catch let error as StoreError where !error.blamesItems(of: entries.count) {
        let wait = backoff.next()
        log.log(
          outage.failed(error), "the store cannot be written", ["writing": .text(name), "error": .text("\(error)")])
        try? await loop.sleep(for: wait)
      } catch {
        log.error("the store refuses a write", ["writing": .text(name), "error": .text("\(error)")])
        if let refused = plan.refuse() { batch[refused].caller.resume(throwing: error) }
      }
    }
  }

  /// Returns the items that may still be written. The callers of the others get ``OwnershipLost``.
  private static func open(_ batch: [Entry]) -> [Entry] {
    let now = BootInstant.now
    return batch.filter { entry in
      if entry.fence.isOpen(at: now) { return true }
      entry.caller.resume(throwing: OwnershipLost())
      return false
    }
  }
}
