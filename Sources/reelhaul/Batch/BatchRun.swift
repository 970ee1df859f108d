import CommandLineKit
import Glibc
import Messages
import ReelhaulClient
import System
import TaskCore

/// Sends a stream of lines: reads a block, decodes it while the block before is on its way to Kafka, prints the ids of
/// what Kafka has.
struct BatchRun {
  private static let blockSize = 1 << 20

  private let client: ReelhaulClient
  private let context: Context
  private let decoder: BatchDecoder
  private(set) var sent = 0
  private(set) var bad = 0

  init(_ client: ReelhaulClient, _ context: Context, isStrict: Bool) {
    self.client = client
    self.context = context
    decoder = BatchDecoder(isStrict: isStrict)
  }

  /// Reads `descriptor` to its end, or with `--strict` to the first bad line.
  mutating func run(_ descriptor: Int32) async throws {
    var splitter = LineSplitter(limit: CommandDecoder.sizeLimit)
    var isOpen = true
    // The block that Kafka does not have yet.
    var pending: Task<[Command], any Error>?
    while isOpen {
      let lines = try Self.read(descriptor, into: &splitter)
      isOpen = lines != nil
      let outcome = decoder.decode(lines ?? splitter.finish())
      report(outcome.bad)
      if decoder.isStrict, !outcome.bad.isEmpty { isOpen = false }
      if let pending { print(try await pending.value) }
      pending =
        outcome.commands.isEmpty
        ? nil
        : Task { [client] in
          try await client.send(outcome.commands)
          return outcome.commands
        }
    }
    if let pending { print(try await pending.value) }
  }

  /// The lines that end in the next block; nil at the end.
  private static func read(_ descriptor: Int32, into splitter: inout LineSplitter) throws -> [LineSplitter.Line]? {
    try withUnsafeTemporaryAllocation(byteCount: blockSize, alignment: 16) { buffer in
      while true {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        if count > 0 { return splitter.add(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        if count == 0 { return nil }
        guard errno == EINTR else { throw SystemError.last("read the batch") }
      }
    }
  }

  private mutating func print(_ commands: [Command]) {
    sent += commands.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(commands.count * 37)
    for command in commands {
      bytes.append(contentsOf: command.taskID.description.utf8)
      bytes.append(UInt8(ascii: "\n"))
    }
    bytes.withUnsafeBytes { context.output.write($0) }
  }

  private mutating func report(_ lines: [BatchDecoder.BadLine]) {
    bad += lines.count
    for line in lines { context.note("line \(line.number): \(line.reason)") }
  }
}
