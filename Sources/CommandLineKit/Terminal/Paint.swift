/// Adds colour, if it is wanted.
package struct Paint: Sendable, Hashable {
  package enum Ink: String, Sendable {
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"
  }

  private let isEnabled: Bool

  package init(isEnabled: Bool) {
    self.isEnabled = isEnabled
  }

  package static let plain = Paint(isEnabled: false)

  package func callAsFunction(_ ink: Ink, _ text: String) -> String {
    isEnabled && !text.isEmpty ? "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m" : text
  }
}
