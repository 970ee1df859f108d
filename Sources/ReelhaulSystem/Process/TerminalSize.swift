import CReelhaulSystem

/// The size of the terminal behind a file descriptor.
package enum TerminalSize {
  /// The number of columns; nil if the descriptor is not a terminal or the terminal does not tell.
  package static func columns(of descriptor: Int32) -> Int32? {
    let columns = rh_terminal_columns(descriptor)
    return columns > 0 ? columns : nil
  }

  /// The number of rows; nil if the descriptor is not a terminal or the terminal does not tell.
  package static func rows(of descriptor: Int32) -> Int32? {
    let rows = rh_terminal_rows(descriptor)
    return rows > 0 ? rows : nil
  }
}
