import Glibc
import ReelhaulSystem

/// The terminal of this process as a screen of its own: what was on it comes back at the end, also if the program ends by a
/// signal. Keys come at once and are not shown. Ctrl-C still is a signal.
package final class RawTerminal: Sendable {
  private static let begin = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
  private static let finish = "\u{1B}[?25h\u{1B}[?1049l"

  private let former: termios
  /// A terminal that is gone is noticed by ``typed()``.
  private let output = Output(descriptor: STDOUT_FILENO)
  /// Held while something is written: nothing comes after the end of the screen.
  private let isOn = Lock(true)

  /// Nil if standard input or output is not a terminal.
  package init?() {
    var settings = termios()
    guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
    former = settings
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    // A program that is suspended or aborted would leave the terminal as it is now.
    withUnsafeMutableBytes(of: &settings.c_cc) { keys in
      keys[Int(VSUSP)] = 0
      keys[Int(VQUIT)] = 0
      keys[Int(VMIN)] = 0
      keys[Int(VTIME)] = 0
    }
    guard tcsetattr(STDIN_FILENO, TCSANOW, &settings) == 0 else { return nil }
    output.write(Self.begin)
    ProgramEnd.before { [weak self] in self?.restore() }
  }

  deinit { restore() }

  package func restore() {
    isOn.withLock { isOn in
      guard isOn else { return }
      isOn = false
      output.write(Self.finish)
      var settings = former
      tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    }
  }

  /// The bytes that were typed since the last call; nil if the terminal is gone.
  package func typed() -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 256)
    var event = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    guard poll(&event, 1, 0) > 0 else { return [] }
    let count = read(STDIN_FILENO, &bytes, bytes.count)
    guard count > 0 else { return count == 0 || (errno != EINTR && errno != EAGAIN) ? nil : [] }
    return Array(bytes[..<count])
  }

  /// Columns and rows.
  package var size: (columns: Int, rows: Int) {
    (
      TerminalSize.columns(of: STDOUT_FILENO).map(Int.init) ?? 80,
      TerminalSize.rows(of: STDOUT_FILENO).map(Int.init) ?? 24
    )
  }

  /// Shows `lines` from the first row on, each cut by the caller to the width; clears what is below.
  package func show(_ lines: [String]) {
    var text = "\u{1B}[?2026h\u{1B}[H"
    text += lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
    text += "\u{1B}[J\u{1B}[?2026l"
    isOn.withLock { isOn in
      if isOn { output.write(text) }
    }
  }
}
