/// A bar of a fixed number of columns, drawn in eighths of a column if the terminal can show them.
struct ProgressBar {
  let width: Int
  let ascii: Bool

  private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  /// An unknown fraction is an empty bar.
  func render(_ fraction: Double?) -> String {
    let inner = width - 2
    let parts = Int((fraction ?? 0) * Double(inner * 8))
    if ascii {
      let full = parts / 8
      return "[" + String(repeating: "#", count: full) + String(repeating: "-", count: inner - full) + "]"
    }
    let bar = String(repeating: "█", count: parts / 8) + Self.eighths[parts % 8]
    let empty = inner - parts / 8 - (parts % 8 == 0 ? 0 : 1)
    return "▕" + bar + String(repeating: " ", count: empty) + "▏"
  }
}
