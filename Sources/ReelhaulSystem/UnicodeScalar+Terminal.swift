extension Unicode.Scalar {
  /// Whether a text of somebody else's must not bring it to a terminal: with it the text could control the terminal, or
  /// look like another one.
  package var isUnsafeOnTerminal: Bool {
    if isASCII { return value < 0x20 || value == 0x7F }
    return switch properties.generalCategory {
    case .control: true
    // Bidirectional overrides and similar characters can make a name look like another name.
    case .format: value != 0x200D
    case .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
