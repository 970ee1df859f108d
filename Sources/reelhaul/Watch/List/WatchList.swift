import CommandLineKit
import TaskAdvice
import TaskCore

/// The list of tasks that `watch` shows on a whole terminal, and what keys do to it. It decides; ``WatchScreen`` reads the
/// keys and the store, and sends what it decides.
struct WatchList {
  /// What the list has.
  enum Group: String, CaseIterable {
    case unfinished, running, waiting, paused, failed, all

    var states: [TaskState] {
      switch self {
      case .unfinished: [.running, .publishing, .queued, .paused, .blocked]
      case .running: [.running, .publishing]
      case .waiting: [.queued, .blocked]
      case .paused: [.paused]
      case .failed: [.failed]
      case .all: []
      }
    }

    var next: Group {
      let groups = Self.allCases
      return groups[((groups.firstIndex(of: self) ?? 0) + 1) % groups.count]
    }
  }

  enum Mode: Equatable {
    case list
    /// Typing what titles, URLs, queues, kinds and ids must contain.
    case typing
    /// Asking before something is destroyed. The cursor may go to another task meanwhile, so the question keeps its own.
    case confirming(ControlAction, UniqueID, title: String)
    case details(UniqueID)
    case help
  }

  /// What the screen shall do after a key.
  enum Effect: Equatable {
    case none, quit, reload
    case send(ControlAction, UniqueID, title: String)
  }

  var group: Group
  private(set) var text = ""
  private(set) var mode = Mode.list
  /// The task under the cursor. It stays the same one while others come and go.
  private(set) var selected: UniqueID?
  /// All tasks of the group, in the order of the list.
  private(set) var tasks: [TaskDocument] = []
  /// In these states there are more than the list has.
  private(set) var more: Set<TaskState> = []
  /// What the last action or trouble was, in the last line.
  var message = ""
  /// The first row that is shown, and how many fit.
  var top = 0
  var height = 20

  init(group: Group = .unfinished, text: String = "") {
    self.group = group
    self.text = text
  }

  /// The tasks that contain the text.
  var shown: [TaskDocument] { text.isEmpty ? tasks : tasks.filter(matches) }

  func matches(_ task: TaskDocument) -> Bool { text.isEmpty || task.contains(text.lowercased()) }

  var current: TaskDocument? { tasks.first { $0.spec.id == selected } }

  private func has(_ id: UniqueID) -> Bool { tasks.contains { $0.spec.id == id } }

  mutating func update(_ tasks: [TaskDocument], more: Set<TaskState>) {
    let place = shown.firstIndex { $0.spec.id == selected } ?? 0
    (self.tasks, self.more) = (tasks, more)
    keepSelection(near: place)
    switch mode {
    // Keys are for the selected task.
    case .details(let id) where id != selected: mode = .list
    case .confirming(let action, let id, let title) where !has(id):
      mode = .list
      message = "\(action.name) was not sent: \(title) has left the list."
    default: break
    }
  }

  mutating func handle(_ key: Key) -> Effect {
    switch mode {
    case .typing: return type(key)
    case .confirming(let action, let id, let title):
      mode = .list
      guard key == .character("y") else {
        message = "Nothing was changed."
        return .none
      }
      return .send(action, id, title: title)
    case .help:
      mode = .list
      return .none
    case .details:
      switch key {
      case .enter, .escape, .backspace, .character("q"):
        mode = .list
        return .none
      default:
        let effect = press(key)
        if case .details = mode, let selected { mode = .details(selected) }
        return effect
      }
    case .list: return press(key)
    }
  }

  private mutating func press(_ key: Key) -> Effect {
    message = ""
    switch key {
    case .up, .character("k"): move(by: -1)
    case .down, .character("j"): move(by: 1)
    case .pageUp, .control("u"): move(by: -height)
    case .pageDown, .control("d"): move(by: height)
    case .home, .character("g"): move(by: -.max / 2)
    case .end, .character("G"): move(by: .max / 2)
    case .enter: if let selected { mode = .details(selected) }
    case .character("/"): mode = .typing
    case .character("?"), .character("h"): mode = .help
    case .character("s"): return show(group.next)
    case .character(let digit)
    where digit.isASCII && Group.allCases.indices.contains((digit.wholeNumberValue ?? 0) - 1):
      return show(Group.allCases[(digit.wholeNumberValue ?? 1) - 1])
    case .escape:
      text = ""
      keepSelection(near: 0)
    case .character("q"): return .quit
    case .character("p"): return act(.pause)
    case .character("r"): return act(current?.state == .paused ? .resume : .retry)
    case .character("c"): return act(.cancel)
    case .character("x"): return act(.remove(files: false))
    case .character("+"): return act(.prioritize(min(1000, (current?.spec.priority ?? 0) + 10)))
    case .character("-"): return act(.prioritize(max(-1000, (current?.spec.priority ?? 0) - 10)))
    default: break
    }
    return .none
  }

  private mutating func show(_ group: Group) -> Effect {
    self.group = group
    (tasks, more, selected, top) = ([], [], nil, 0)
    return .reload
  }

  private mutating func type(_ key: Key) -> Effect {
    switch key {
    case .enter: mode = .list
    case .escape: (text, mode) = ("", .list)
    case .backspace: text = String(text.dropLast())
    case .control("u"): text = ""
    case .character(let character) where text.count < 200: text.append(character)
    case .up, .down:
      mode = .list
      return press(key)
    default: break
    }
    keepSelection(near: 0)
    return .none
  }

  /// Sends what the task's state allows; asks before something is destroyed.
  private mutating func act(_ action: ControlAction) -> Effect {
    guard let task = current else { return .none }
    var machine = TaskMachine(state: task.state)
    guard (try? machine.handle(.control(action))) != nil else {
      message = "\(action.name) is not possible: \(task.title) is \(task.status)."
      return .none
    }
    switch action {
    case .cancel, .remove:
      mode = .confirming(action, task.spec.id, title: task.title)
      return .none
    case .prioritize(let priority):
      // The next key may be typed before the task is read again.
      if let index = tasks.firstIndex(where: { $0.spec.id == task.spec.id }) { tasks[index].spec.priority = priority }
    default: break
    }
    return .send(action, task.spec.id, title: task.title)
  }

  private mutating func move(by rows: Int) {
    let shown = shown
    guard !shown.isEmpty else { return }
    let place = shown.firstIndex { $0.spec.id == selected } ?? 0
    selected = shown[max(0, min(shown.count - 1, place + rows))].spec.id
    scroll()
  }

  private mutating func keepSelection(near place: Int) {
    let shown = shown
    if !shown.contains(where: { $0.spec.id == selected }) {
      selected = shown.isEmpty ? nil : shown[min(place, shown.count - 1)].spec.id
    }
    scroll()
  }

  /// Keeps the selected row visible.
  mutating func scroll() {
    let shown = shown
    let place = shown.firstIndex { $0.spec.id == selected } ?? 0
    top = max(0, min(top, shown.count - height))
    if place < top { top = place }
    if place >= top + height { top = place - height + 1 }
  }
}

extension TaskDocument {
  /// Whether a lower-case text is part of what people know a task by.
  fileprivate func contains(_ text: String) -> Bool {
    [title, spec.source, spec.destination ?? "", spec.queue, spec.kind.rawValue, status, "\(spec.id)"]
      .contains { $0.lowercased().contains(text) }
  }
}
