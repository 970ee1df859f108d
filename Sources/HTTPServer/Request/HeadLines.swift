/// Refuses what llhttp lets through in a head, although others read it in another way: folded lines, and lines that end
/// without CR.
struct HeadLines {
  private var last: UInt8 = 0
  private var isLineEmpty = true
  private var hasBegun = false
  private var hasEnded = false

  /// What is wrong with the next bytes, as far as they belong to the head.
  mutating func read(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard !hasEnded else { return nil }
    for byte in bytes {
      switch byte {
      case 10:
        guard last == 13 else { return "a line ends without CR" }
        if isLineEmpty, hasBegun {
          hasEnded = true
          return nil
        }
        isLineEmpty = true
      case 13: break
      default:
        if isLineEmpty, hasBegun, byte == 32 || byte == 9 { return "a header field is folded" }
        (isLineEmpty, hasBegun) = (false, true)
      }
      last = byte
    }
    return nil
  }
}
