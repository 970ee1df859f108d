import CommandLineKit
import Glibc
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import WorkerOptions

/// Sends a batch. The main thread reads and decodes blocks and sends their commands in order. Meanwhile a few blocks
/// are being sent; each prints the ids of its commands, in order, once Kafka has acknowledged them.
@MainActor
struct BatchRun {
  /// The most blocks that are being sent at once.
  private static let depth = 4
  /// The most ids of a block that are named because Kafka did not acknowledge them.
  nonisolated static let mostNamed = 100

  private struct Acknowledgement {
    var sent: Int
    var unprinted: SystemError?
    var failure: ReelhaulClientError?
  }

  private let client: ReelhaulClient
  private let context: Context
  private let isStrict: Bool
  private var decoder = BatchDecoder()
  private var onTheWay: [Task<Acknowledgement, Never>] = []
  private var failure: (any Error)?
  private(set) var sent = 0
  private(set) var bad = 0
  /// The last line that was read, if there may be more.
  private(set) var lastRead: Int?
  /// Why ids could not be printed, unless their reader has gone: whoever pipes them to `head` has enough of them.
  private(set) var unprinted: SystemError?

  /// `12 lines were sent, 1 is bad`
  var summary: String {
    "\(sent) \(sent == 1 ? "line was" : "lines were") sent" + (bad > 0 ? ", \(bad) \(bad == 1 ? "is" : "are") bad" : "")
  }

  init(_ client: ReelhaulClient, _ context: Context, isStrict: Bool) {
    self.client = client
    var context = context
    // All lines are sent, whoever reads the ids.
    context.console.output.endsOnFailure = false
    self.context = context
    self.isStrict = isStrict
  }

  /// Names the wrong lines and sends the others. With `--strict` it sends nothing unless all lines are correct.
  mutating func run(_ input: BatchInput) async throws {
    if isStrict {
      try check(input)
      guard bad == 0 else { return }
    }
    do {
      // Here a strict batch has a wrong line only if its file has changed since the first reading.
      while failure == nil, !isStrict || bad == 0, let lines = try input.next() {
        let block = decoder.decode(lines)
        lastRead = lines.last?.number ?? lastRead
        report(block)
        if !block.commands.isEmpty { send(block) }
        if onTheWay.count > Self.depth { await settleFirst() }
      }
      if input.isAtEnd { lastRead = nil }
    } catch {
      failure = error
    }
    while !onTheWay.isEmpty { await settleFirst() }
    if let failure { throw failure }
  }

  private mutating func check(_ input: BatchInput) throws {
    try input.keep()
    while let lines = try input.next() { report(decoder.decode(lines)) }
    try input.rewind()
  }

  private mutating func report(_ block: BatchDecoder.Outcome) {
    bad += block.bad.count
    for line in block.bad + block.notes { context.note("line \(line.number): \(line.reason)") }
  }

  private mutating func send(_ block: BatchDecoder.Outcome) {
    let pending = client.enqueue(block.commands)
    let (commands, numbers) = (block.commands, block.numbers)
    onTheWay.append(
      Task.detached { [context, last = onTheWay.last] in
        let failure = await Self.failure(of: pending)
        // Ids are printed in the order of their lines.
        _ = await last?.value
        let unprinted = Self.print(commands.map(\.taskID), without: failure?.failures ?? [], context)
        if let failure {
          let lines = LineRanges(failure.failures.map { numbers[$0] })
          context.note("\(lines): not acknowledged by Kafka: \(failure)")
          for index in failure.failures.prefix(Self.mostNamed) {
            context.note("line \(numbers[index]): its id is \(commands[index].id)")
          }
        }
        return Acknowledgement(
          sent: commands.count - (failure?.failures.count ?? 0), unprinted: unprinted, failure: failure)
      })
  }

  private nonisolated static func failure(of pending: PendingCommands) async -> ReelhaulClientError? {
    do throws(ReelhaulClientError) {
      try await pending.acknowledged()
      return nil
    } catch {
      return error
    }
  }

  private nonisolated static func print(
    _ ids: [UniqueID], without failures: [Int], _ context: Context
  ) -> SystemError? {
    var failures = failures[...]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(ids.count * 37)
    for (index, id) in ids.enumerated() {
      if failures.first == index {
        failures.removeFirst()
      } else {
        bytes.append(contentsOf: id.utf8)
        bytes.append(UInt8(ascii: "\n"))
      }
    }
    return bytes.withUnsafeBytes { context.output.write($0) }
  }

  private mutating func settleFirst() async {
    let acknowledgement = await onTheWay.removeFirst().value
    sent += acknowledgement.sent
    if acknowledgement.unprinted?.errno != EPIPE { unprinted = unprinted ?? acknowledgement.unprinted }
    failure = failure ?? acknowledgement.failure
  }
}
