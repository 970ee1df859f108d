import CommandLineKit
import ReelhaulSystem
import WorkerOptions

/// Prints sentences about the fleet: at once, or when the display asks for them while bars are drawn.
final class Announcer: Sendable {
  private let console: Console
  /// Nil if no bars are drawn.
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

  /// Holds sentences back from now on. Returns those that have been held so far.
  func hold() -> [String] {
    held.withLock { held in
      defer { held = [] }
      return held ?? []
    }
  }

  /// Prints the held sentences, and all later ones at once.
  func release() {
    let lines = held.withLock { held in
      defer { held = nil }
      return held ?? []
    }
    for line in lines { console.note(line) }
  }
}
