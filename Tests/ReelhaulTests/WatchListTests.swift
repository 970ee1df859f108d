import CommandLineKit
import TaskCore
import Testing

@testable import reelhaul

@Suite struct WatchListTests {
  private static func task(_ number: UInt64, _ state: TaskState = .running, _ title: String = "film") -> TaskDocument {
    var task = TaskDocument(
      spec: TaskSpec(
        id: UniqueID(high: 1, low: number), kind: .download, source: "https://a.example/\(title)\(number).mp4",
        destination: "storage://default/\(title)\(number).mp4", queue: "default"),
      state: state, createdAt: Timestamp(microseconds: 0))
    (task.bytesDone, task.bytesTotal, task.rate) = (50, 100, 10)
    return task
  }

  private static func list(_ tasks: [TaskDocument], height: Int = 3) -> WatchList {
    var list = WatchList()
    list.height = height
    list.update(tasks, more: [])
    return list
  }

  private static let terminal = Terminal(isInteractive: true, width: 80)

  private func type(_ text: String, in list: inout WatchList) {
    for character in text { _ = list.handle(.character(character)) }
  }

  @Test("the cursor stays on its task while others come and go, and goes to a neighbour when its task goes")
  func selection() {
    var list = Self.list((1...5).map { Self.task($0) })
    _ = list.handle(.down)
    _ = list.handle(.character("j"))
    #expect(list.selected == Self.task(3).spec.id)
    list.update([7, 1, 3, 4].map { Self.task($0) }, more: [])
    #expect(list.selected == Self.task(3).spec.id)
    list.update([7, 1, 4].map { Self.task($0) }, more: [])
    #expect(list.selected == Self.task(4).spec.id)
    list.update([], more: [])
    #expect(list.selected == nil)
    #expect(list.handle(.down) == .none && list.handle(.character("p")) == .none)
  }

  @Test("the selected row is always visible, and every line fits the terminal", arguments: [10, 30, 80, 200])
  func frame(_ width: Int) {
    var list = Self.list((1...50).map { Self.task($0, .running, "日本のとても長い題名の映画") }, height: 7)
    var terminal = Self.terminal
    terminal.width = width
    for key: Key in [.end, .up, .pageUp, .home, .pageDown, .down, .down] {
      _ = list.handle(key)
      let lines = list.frame(on: terminal, rows: 10)
      #expect(lines.count == 10 && lines.allSatisfy { DisplayWidth.of($0) <= width })
      #expect(lines.count { $0.hasPrefix("▌ ") } == 1, "\(key)")
    }
  }

  @Test("a text that no task contains fits the terminal, too, and cannot control it", arguments: [10, 80])
  func nothingFound(_ width: Int) {
    var list = WatchList(text: String(repeating: "z", count: 300) + "\u{1B}[31m")
    list.update([Self.task(1)], more: [])
    var terminal = Self.terminal
    terminal.width = width
    for line in list.frame(on: terminal, rows: 10) {
      #expect(DisplayWidth.of(line) <= width && !line.contains("\u{1B}"))
    }
    list = WatchList(text: "\u{1B}[31m")
    list.update([Self.task(1)], more: [])
    #expect(!list.frame(on: terminal, rows: 10).contains { $0.contains("\u{1B}") })
  }

  @Test("an action is sent only if the state of the task allows it, and after a question if it destroys something")
  func actions() {
    var list = Self.list([Self.task(1), Self.task(2, .paused), Self.task(3, .failed)])
    let ids = list.tasks.map(\.spec.id)
    let titles = list.tasks.map(\.title)
    #expect(list.handle(.character("p")) == .send(.pause, ids[0], title: titles[0]))
    #expect(
      list.handle(.character("c")) == .none && list.mode == .confirming(.cancel, ids[0], title: titles[0]))
    #expect(list.handle(.character("n")) == .none && list.mode == .list)
    #expect(list.handle(.character("c")) == .none)
    #expect(list.handle(.character("y")) == .send(.cancel, ids[0], title: titles[0]))
    #expect(list.handle(.down) == .none && list.handle(.character("p")) == .none && !list.message.isEmpty)
    #expect(list.handle(.character("r")) == .send(.resume, ids[1], title: titles[1]))
    #expect(list.handle(.down) == .none && list.handle(.character("r")) == .send(.retry, ids[2], title: titles[2]))
    #expect(list.handle(.home) == .none)
    #expect(list.handle(.character("+")) == .send(.prioritize(10), ids[0], title: titles[0]))
  }

  @Test("a question stays with its task, and is taken back when the task leaves the list", arguments: ["c", "x"])
  func questions(_ key: Character) {
    var list = Self.list([Self.task(1, .paused, "alpha"), Self.task(2, .paused, "beta")])
    let first = Self.task(1).spec.id
    func lastLine() -> String { list.frame(on: Self.terminal, rows: 10).last ?? "" }
    _ = list.handle(.character(key))
    list.update([Self.task(3, .paused, "gamma"), Self.task(1, .paused, "alpha")], more: [])
    #expect(lastLine().contains("alpha1.mp4? y: yes"))
    let action: ControlAction = key == "c" ? .cancel : .remove(files: false)
    #expect(list.handle(.character("y")) == .send(action, first, title: "alpha1.mp4"))

    _ = list.handle(.character(key))
    list.update([Self.task(2, .paused, "beta")], more: [])
    #expect(list.mode == .list && list.current?.title == "beta2.mp4")
    #expect(lastLine().contains("alpha1.mp4 has left the list"))
    #expect(list.handle(.character("y")) == .none)
  }

  @Test("what is typed narrows the list, escape shows all again, and keys are text meanwhile") func find() {
    var list = Self.list([
      Self.task(1, .running, "alpha"), Self.task(2, .running, "beta"), Self.task(3, .paused, "quality"),
    ])
    type("/QU", in: &list)
    #expect(list.mode == .typing && list.shown.map(\.spec.id.low) == [3] && list.selected == list.tasks[2].spec.id)
    _ = list.handle(.backspace)
    _ = list.handle(.backspace)
    type("beta", in: &list)
    #expect(list.handle(.enter) == .none && list.shown.map(\.spec.id.low) == [2])
    #expect(list.handle(.escape) == .none && list.shown.count == 3)
    #expect(list.handle(.character("q")) == .quit)
  }

  @Test("details are closed when their task is not shown any more, because keys are for another one then") func gone() {
    var list = Self.list([Self.task(1, .running, "alpha"), Self.task(2, .running, "beta")])
    type("/running", in: &list)
    _ = list.handle(.enter)
    #expect(list.handle(.enter) == .none && list.mode == .details(Self.task(1).spec.id))
    list.update([Self.task(1, .paused, "alpha"), Self.task(2, .running, "beta")], more: [])
    #expect(list.mode == .list && list.selected == Self.task(2).spec.id)
  }

  @Test("a number shows another group, and details follow the cursor until they are closed") func groups() {
    var list = Self.list([Self.task(1), Self.task(2)])
    #expect(list.handle(.enter) == .none && list.mode == .details(Self.task(1).spec.id))
    #expect(list.handle(.down) == .none && list.mode == .details(Self.task(2).spec.id))
    #expect(list.handle(.escape) == .none && list.mode == .list)
    #expect(list.handle(.character("5")) == .reload && list.group == .failed && list.tasks.isEmpty)
    #expect(list.handle(.character("s")) == .reload && list.group == .all)
    #expect(list.handle(.character("s")) == .reload && list.group == .unfinished)
    #expect(list.handle(.character("9")) == .none && list.handle(.character("²")) == .none)
    #expect(
      list.handle(.character("?")) == .none && list.frame(on: Self.terminal, rows: 24).contains { $0.contains("quit") })
  }

  @Test("keys are read alike wherever their bytes are cut, and nonsense is passed over", arguments: [1, 2, 3, 100])
  func keys(_ size: Int) {
    let bytes =
      Array("j\u{1B}[A\u{1B}OB\u{1B}[5~\u{1B}[1;5Hé日\r\u{7F}\u{15}\u{1B}[200~x".utf8) + [0xFF, 0x80] + Array("q".utf8)
    var decoder = KeyDecoder()
    var keys: [Key] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      keys += decoder.decode(bytes[start..<min(start + size, bytes.count)])
    }
    #expect(
      keys == [
        .character("j"), .up, .down, .pageUp, .home, .character("é"), .character("日"), .enter, .backspace,
        .control("u"),
        .character("x"), .character("q"),
      ])
    #expect(decoder.decode([0x1B]).isEmpty && decoder.flush() == [.escape] && decoder.flush().isEmpty)
  }
}
