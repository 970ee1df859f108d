import CommandLineKit
import ReelhaulClient
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

/// Shows a ``WatchList`` on the whole terminal until the user quits.
struct WatchScreen {
  private static let interval: Duration = .milliseconds(250)
  /// How soon keys are noticed, and after which pause an escape byte is the escape key.
  private static let attention: Duration = .milliseconds(25)
  private let store: any TaskReader & FleetReader & HookStore
  private let context: Context
  private let screen: RawTerminal
  private var source: WatchSource
  private var list: WatchList
  private var details: [String] = []
  private var isOld = false
  private var client: ReelhaulClient?

  init(
    _ store: any TaskReader & FleetReader & HookStore, _ source: WatchSource, _ context: Context, _ screen: RawTerminal,
    _ list: WatchList
  ) {
    (self.store, self.source, self.context, self.screen, self.list) = (store, source, context, screen, list)
  }

  mutating func run() async throws -> ExitCode {
    let stop = StopSignal(hangup: true)
    stop.onStop { [screen] in
      screen.restore()
      stop.end()
    }
    await stop.listening()
    defer { screen.restore() }
    let code = try await loop()
    await client?.close()
    return code
  }

  private mutating func loop() async throws -> ExitCode {
    var decoder = KeyDecoder()
    var next = BootInstant.now
    while true {
      guard let bytes = screen.typed() else { return .done }
      let keys = bytes.isEmpty && decoder.isPending ? decoder.flush() : decoder.decode(bytes)
      for key in keys {
        switch list.handle(key) {
        case .none: break
        case .quit: return .done
        case .reload: next = .now
        case .send(let action, let task, let title):
          await send(action, task, title)
          next = .now
        }
        if case .details = list.mode { next = .now }
      }
      if BootInstant.now >= next {
        await read()
        next = .now + Self.interval
        draw()
      } else if !keys.isEmpty {
        draw()
      }
      try await Task.sleep(for: Self.attention)
    }
  }

  private mutating func draw() {
    let size = screen.size
    var terminal = context.terminal
    terminal.width = size.columns
    list.height = max(1, size.rows - 3)
    list.scroll()
    screen.show(list.frame(on: terminal, rows: size.rows, details: details, isOld: isOld))
  }

  private mutating func read() async {
    do {
      let (tasks, more) = try await source.tasks(list.group)
      list.update(tasks, more: more)
      if case .details(let id) = list.mode, let task = try await store.task(id) {
        details = TaskDetails.lines(try await TaskReport.of(task, in: store))
      }
      isOld = false
    } catch StoreError.unavailable {
      isOld = true
    } catch {
      list.message = "\(error)"
    }
  }

  private mutating func send(_ action: ControlAction, _ task: UniqueID, _ title: String) async {
    do {
      let client = try self.client ?? Fleet.client(context.arguments)
      self.client = client
      try await client.send([.control(.init(id: .make(), taskID: task, action: action, actor: CommandActor.name))])
      list.message = "\(action.name): sent for \(title)."
    } catch {
      list.message = "\(action.name) could not be sent: \(error)"
    }
  }
}
