import CommandLineKit
import Testing

@Suite struct TerminalTests {
  private let ascii = Terminal(isInteractive: true, width: 80, isUnicode: false)
  private let item = ProgressItem(
    title: "film.mp4", status: "running", phase: .active, bytesDone: 50 << 20, bytesTotal: 100 << 20, rate: 10 << 20,
    eta: 5)

  @Test("a line shows the bar, percent, bytes, rate and time left")
  func drawsABarWithRateAndTimeLeft() {
    let lines = ProgressBoard(items: [item]).lines(on: ascii)
    #expect(lines == ["film.mp4 [############------------]  50% 50.0 MiB 10.0 MiB/s     0:05 running"])
  }

  @Test(
    "no line of the board is wider than the terminal or contains control characters",
    arguments: [20, 40, 60, 61, 80, 100, 200], [true, false])
  func neverLeavesTheTerminal(_ width: Int, _ isUnicode: Bool) {
    let terminal = Terminal(isInteractive: true, width: width, isUnicode: isUnicode)
    let titles = ["a", String(repeating: "long ", count: 30), "日本語の映画の題名はとても長い.mp4", "\u{1B}[2Jevil\n", "e\u{301}"]
    let items = titles.map { title in
      var item = item
      item.title = title
      return item
    }
    let lines = ProgressBoard(items: items, footer: String(repeating: "f", count: 300)).lines(on: terminal)
    #expect(lines.count == titles.count + 1)
    #expect(lines.allSatisfy { DisplayWidth.of($0) <= width })
    #expect(lines.allSatisfy { !$0.contains("\u{1B}") && !$0.contains("\n") })
  }

  @Test("a line keeps its width, however much is done", arguments: [nil, 0, 1, 99, 100, 120] as [Int64?])
  func barsKeepTheirLength(_ done: Int64?) {
    var item = item
    item.bytesDone = done ?? 5
    item.bytesTotal = done == nil ? nil : 100
    let terminal = Terminal(isInteractive: true, width: 100)
    let widths = Set(ProgressBoard(items: [item]).lines(on: terminal).map(DisplayWidth.of))
    #expect(widths == [8 + 1 + 40 + 1 + 44 - "   ".count])
  }

  @Test(
    "a narrow terminal shows the most important figures",
    arguments: [
      (80, "film.mp4 [############------------]  50% 50.0 MiB 10.0 MiB/s     0:05 running"),
      (53, "film.mp4  50% 50.0 MiB 10.0 MiB/s     0:05 running"),
      (46, "film.mp4  50% 10.0 MiB/s     0:05 running"),
      (40, "film.mp4  50% 10.0 MiB/s running"),
      (30, "film.mp4  50% running"),
      (20, "film.mp4 running"),
    ])
  func aNarrowTerminalHasTheFiguresThatMatterMost(_ width: Int, _ line: String) {
    let terminal = Terminal(isInteractive: true, width: width, isUnicode: false)
    #expect(ProgressBoard(items: [item]).lines(on: terminal) == [line])
  }

  @Test("active items are shown first if not all fit")
  func showsTheActiveFirstWhereNotAllFit() {
    var items = (0..<10).map { ProgressItem(title: "waits\($0)", status: "queued", phase: .waiting) }
    items.append(item)
    let lines = ProgressBoard(items: items, footer: "total").lines(on: ascii, height: 4)
    #expect(lines.count == 4)
    #expect(lines[0].hasPrefix("waits0"))
    #expect(lines[2] == "and 9 more")
    #expect(lines[3] == "total")
    #expect(ProgressBoard(items: items).lines(on: ascii, height: 1) == ["and 11 more"])
  }

  @Test("a frame replaces the one before, and a permanent line goes above it")
  func redrawsInPlace() {
    var writer = BoardWriter()
    let first = writer.frame(["a", "b"], width: 80)
    #expect(!first.contains("[2A"))
    #expect(writer.frame(["c"], width: 80).contains("\u{1B}[2A"))
    #expect(writer.above(["said"], width: 80).hasPrefix("\r\u{1B}[1Asaid"))
    #expect(!writer.frame(["c"], width: 80).contains("A"))
  }

  @Test("a frame is replaced after the terminal became narrower and wrapped its lines")
  func redrawsAfterTheTerminalWasMadeNarrower() {
    var writer = BoardWriter()
    let painted = Paint(isEnabled: true)(.cyan, String(repeating: "x", count: 100))
    _ = writer.frame([painted, "日本", ""], width: 100)
    // 100 columns take three lines of 40 columns; the other lines take one each.
    #expect(writer.frame([], width: 40).contains("\u{1B}[5A"))
  }

  @Test("a table leaves out its least important columns on a narrow terminal")
  func tablesLeaveOutColumnsOnANarrowTerminal() {
    var table = Table([
      .init("id"), .init("rate", leaves: 2), .init("eta", leaves: 1), .init("title", shrinks: true),
    ])
    table.add(["0123456789", "10 MiB/s", "0:05", "a film of some length"])
    func heads(_ width: Int) -> String { table.lines(on: Terminal(isInteractive: true, width: width))[0] }
    #expect(heads(60) == "id          rate      eta   title")
    #expect(heads(36) == "id          rate      eta   title")
    #expect(heads(31) == "id          rate      title")
    #expect(heads(20) == "id          title")
    #expect(heads(5) == "id          title")
    #expect(table.lines(on: Terminal(isInteractive: true, width: 20))[1] == "0123456789  a film …")
  }

  @Test("the columns of a table are aligned, also with wide characters")
  func tablesAlign() {
    var table = Table([.init("name", shrinks: true), .init("bytes", right: true)])
    table.add(["film", "7"])
    table.add(["日本", "12345"])
    #expect(table.lines(on: ascii) == ["name  bytes", "film      7", "日本  12345"])
  }

  @Test("a table is shortened on a terminal, and complete elsewhere")
  func tablesShrinkOnATerminalAlone() {
    var table = Table([.init("a", shrinks: true), .init("b")])
    table.add([String(repeating: "x", count: 200), "kept"])
    #expect(table.lines(on: ascii)[1].count == 80)
    #expect(table.lines(on: ascii)[1].hasSuffix("kept"))
    #expect(table.lines(on: Terminal(isInteractive: false))[1].count == 206)
  }

  @Test("no cell of a table has control characters, on a terminal or elsewhere", arguments: [true, false])
  func cellsArePrintable(_ isInteractive: Bool) {
    var table = Table([.init("a", shrinks: true), .init("b")])
    table.add(["film\u{1B}[2J", "one\ntwo\r\u{7}"])
    let lines = table.lines(on: Terminal(isInteractive: isInteractive, width: 80, isUnicode: false))
    #expect(lines.last == "film\u{FFFD}[2J  one\u{FFFD}two\u{FFFD}\u{FFFD}")
  }

  @Test("output that is not a terminal has no colour")
  func noColourOffATerminal() {
    #expect(Terminal(descriptor: -1, environment: [:]).hasColour == false)
    #expect(Paint(isEnabled: true)(.red, "x") == "\u{1B}[31mx\u{1B}[0m")
    #expect(Paint.plain(.red, "x") == "x")
  }

  @Test(
    "text is truncated to a number of columns",
    arguments: [("abc", 5, "abc"), ("abcdef", 4, "abc…"), ("日本語", 4, "日…"), ("x", 0, "")])
  func truncates(_ text: String, _ width: Int, _ expected: String) {
    #expect(DisplayWidth.truncate(text, to: width) == expected)
  }

  @Test(
    "a text is as wide as terminals show it",
    arguments: [
      ("", 0), ("film", 4), ("日本", 4), ("e\u{301}", 1), ("น้ำ", 2), ("กำลัง", 4), ("हिन्दी", 5), ("क्षि", 3), ("한국", 4),
      ("\u{1112}\u{1161}\u{11AB}", 2), ("👍", 2), ("👍🏽", 2), ("👨‍👩‍👧", 2), ("🇩🇪", 2), ("❤️", 2), ("❤", 1),
    ])
  func widths(_ text: String, _ columns: Int) {
    #expect(DisplayWidth.of(text) == columns)
    #expect(DisplayWidth.truncate(text, to: columns) == text)
    #expect(DisplayWidth.of(DisplayWidth.fit(text + text, to: columns)) == columns)
  }

  @Test("a text of two lines keeps its line break, and no other control character") func printableLines() {
    #expect(TextWrap.printable("one two\nthree\u{1B}", width: 5) == ["one", "two", "three\u{FFFD}"])
  }
}
