import Testing

@testable import reelhaul

@Suite struct LineSplitterTests {
  private static let text = "one\n\n  \ntwo\r\n0123456789ABC\nlast"

  /// The lines are the same for every division of the bytes into blocks.
  @Test("lines are the same whatever the size of the blocks", arguments: [1, 2, 3, 5, 7, 100])
  func cutsBlocksOfAnySize(_ size: Int) {
    var splitter = LineSplitter(limit: 10)
    var lines: [LineSplitter.Line] = []
    var bytes = Array(Self.text.utf8)[...]
    while !bytes.isEmpty {
      lines += Array(bytes.prefix(size)).withUnsafeBytes { splitter.add($0) }
      bytes = bytes.dropFirst(size)
    }
    lines += splitter.finish()
    #expect(
      lines == [
        .init(number: 1, bytes: Array("one".utf8)), .init(number: 4, bytes: Array("two".utf8)),
        .init(number: 5, bytes: nil), .init(number: 6, bytes: Array("last".utf8)),
      ])
  }

  @Test("a byte order mark is not part of the first line")
  func aByteOrderMarkIsNoPartOfTheFirstLine() {
    var splitter = LineSplitter(limit: 10)
    let text = Array("\u{FEFF}one\n\u{FEFF}two\n".utf8)
    #expect(
      text.withUnsafeBytes { splitter.add($0) } == [
        .init(number: 1, bytes: Array("one".utf8)), .init(number: 2, bytes: Array("\u{FEFF}two".utf8)),
      ])
  }

  @Test("empty input has no lines")
  func nothingComesOfNothing() {
    var splitter = LineSplitter(limit: 10)
    #expect(splitter.finish() == [])
  }
}
