extension UnsafeBufferPointer<UInt8> {
  /// The offset of the first byte that is not part of well-formed UTF-8 (Unicode, table 3-7), or nil.
  func firstInvalidUTF8() -> Int? {
    let raw = UnsafeRawBufferPointer(self)
    var index = 0
    while index < count {
      if index + 8 <= count, raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 {
        index += 8
        continue
      }
      guard let length = sequenceLength(at: index) else { return index }
      index += length
    }
    return nil
  }

  /// The length of the well-formed sequence that begins at `index`.
  private func sequenceLength(at index: Int) -> Int? {
    let length: Int
    let second: ClosedRange<UInt8>
    switch self[index] {
    case 0x00...0x7F: return 1
    case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: return nil
    }
    guard index + length <= count, second.contains(self[index + 1]) else { return nil }
    for next in (index + 2)..<Swift.max(index + 2, index + length) where self[next] & 0xC0 != 0x80 { return nil }
    return length
  }
}
