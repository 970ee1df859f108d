import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Gathers what many tasks want written into few calls: one call is in flight, and what comes meanwhile goes together
/// with the next. Each caller waits for its own answer.
///
/// A store that cannot be reached is asked again until the fence of the caller's lease has closed. An item that the
/// store refuses fails alone: its batch is halved until it is found.
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
  private var outage = Outage()
  private var backoff = Backoff(base: .milliseconds(20), limit: .milliseconds(500), seed: .random(in: 0 ... .max))

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `limit` items go into one call at most. `name` says in the log what is written.
  package init(_ name: String, limit: Int, loop: EventLoop, log: Logger, write: @escaping Write) {
    self.name = name
    self.limit = limit
    self.loop = loop
    self.log = log
    self.write = write
  }

  /// Writes `item` while `fence` is open. Cancellation does not interrupt it: a task that stops has more to write.
  ///
  /// Throws ``OwnershipLost`` once the fence is closed, or ``StoreError`` where the store refuses this item.
  package func submit(_ item: Item, fence: Fence) async throws -> Answer {
    try await withCheckedThrowingContinuation { caller in
      waiting.append(Entry(item: item, fence: fence, caller: caller))
      guard !isWriting else { return }
      isWriting = true
      // A task of its own starts after the callers that are ready now: the first call carries them all.
      loop.task { await self.writeAll() }
    }
  }

  /// For tests.
  var waitingCount: Int { waiting.count }

  private func writeAll() async {
    while !waiting.isEmpty {
      let batch = Array(waiting.prefix(limit))
      waiting.removeFirst(batch.count)
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
        log.log(outage.failed(), "the store cannot be written", ["writing": .text(name), "error": .text("\(error)")])
        try? await loop.sleep(for: wait)
      } catch {
        log.error("the store refuses a write", ["writing": .text(name), "error": .text("\(error)")])
        if let refused = plan.refuse() { batch[refused].caller.resume(throwing: error) }
      }
    }
  }

  /// Those that may still be written; the others learn that they may not.
  private static func open(_ batch: [Entry]) -> [Entry] {
    let now = BootInstant.now
    return batch.filter { entry in
      if entry.fence.isOpen(at: now) { return true }
      entry.caller.resume(throwing: OwnershipLost())
      return false
    }
  }
}
