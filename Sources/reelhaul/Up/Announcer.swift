import CommandLineKit
import ReelhaulSystem
import WorkerOptions

/// Tells people what the fleet does: at once, or where a board is being drawn, when its drawer asks.
final class Announcer: Sendable {
  private let console: Console
  /// nil: nothing is being drawn.
  private let held = Lock<[String]?>(nil)

  init(_ console: Console) {
    self.console = console
  }

  func say(_ text: String) {
    let isHeld = held.withLock { held in
      held?.append(text)
      return held != nil
    }
    if !isHeld { console.note(text) }
  }

  /// Holds what is said from now on; what has been held so far is returned.
  func hold() -> [String] {
    held.withLock { held in
      defer { held = [] }
      return held ?? []
    }
  }

  /// Says what is held, and all that follows, at once.
  func release() {
    let lines = held.withLock { held in
      defer { held = nil }
      return held ?? []
    }
    for line in lines { console.note(line) }
  }
}
