import Glibc
import ReelhaulSystem
import Testing

@testable import reelhaul

@Suite struct BatchInputTests {
  @Test("a batch from standard input that does not block is read to its end") func nonBlocking() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    let writing = ends[1]
    Thread(name: "writer") {
      for line in ["one\n", "two\n"] {
        usleep(100_000)
        _ = line.utf8.withContiguousStorageIfAvailable { write(writing, $0.baseAddress, $0.count) }
      }
      close(writing)
    }.detach()
    let input = try BatchInput("-", standardInput: ends[0])
    var lines: [LineSplitter.Line] = []
    while let more = try input.next() { lines += more }
    #expect(lines.map(\.number) == [1, 2])
  }

  @Test("a batch that is stopped ends, though its pipe stays open and silent", .timeLimit(.minutes(1)))
  func stopped() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { close(ends[1]) }
    #expect(write(ends[1], "one\nha", 6) == 6)
    let input = try BatchInput("-", standardInput: ends[0])
    #expect(try input.next()?.map(\.number) == [1])
    let end = BootInstant.now + .milliseconds(300)
    input.isStopped = { BootInstant.now > end }
    #expect(try input.next() == nil, "half a line is none")
  }
}
