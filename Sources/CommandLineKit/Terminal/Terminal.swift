import Glibc
import ReelhaulSystem

/// The abilities of the terminal or file behind a descriptor.
package struct Terminal: Sendable, Hashable {
  package var isInteractive: Bool
  /// In columns; 80 if it is unknown.
  package var width: Int
  package var hasColour: Bool
  package var isUnicode: Bool

  package init(isInteractive: Bool, width: Int = 80, hasColour: Bool = false, isUnicode: Bool = true) {
    self.isInteractive = isInteractive
    self.width = width
    self.hasColour = hasColour
    self.isUnicode = isUnicode
  }

  /// Reads the descriptor and the environment. No colour if the output is not a terminal, if `NO_COLOR` is set, or if
  /// the terminal is dumb.
  package init(descriptor: Int32, environment: [String: String]) {
    isInteractive = isatty(descriptor) == 1 && environment["TERM"] != "dumb"
    let columns = isInteractive ? Int(TerminalSize.columns(of: descriptor) ?? 80) : 80
    width = columns > 0 ? columns : 80
    hasColour = isInteractive && environment["NO_COLOR"]?.isEmpty ?? true
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
    let encoding = locale.uppercased()
    isUnicode = encoding.hasSuffix("UTF-8") || encoding.hasSuffix("UTF8")
  }

  package var paint: Paint { Paint(isEnabled: hasColour) }

  /// Breaks lines at spaces to fit the terminal. If the output is not a terminal, lines stay unbroken.
  package func wrap(_ text: String) -> [String] {
    isInteractive ? TextWrap.lines(text, width: width) : [text]
  }
}
