/// A key that was pressed on a terminal.
package enum Key: Hashable, Sendable {
  case character(Character)
  case up, down, pageUp, pageDown, home, end
  case enter, escape, backspace
  /// A letter with the control key: `control("u")`.
  case control(Character)
}

/// Makes keys of the bytes that a terminal in raw mode sends, which may be cut anywhere.
package struct KeyDecoder: Sendable {
  private var rest: [UInt8] = []

  package init() {}

  /// The keys that are complete. An escape key alone is complete only at ``flush()``, because the bytes of other keys begin
  /// with it.
  package mutating func decode(_ bytes: some Sequence<UInt8>) -> [Key] {
    rest += bytes
    var keys: [Key] = []
    while let (key, count) = first() {
      rest.removeFirst(count)
      if let key { keys.append(key) }
    }
    return keys
  }

  /// Whether a key may have begun that is not complete.
  package var isPending: Bool { !rest.isEmpty }

  /// Call it when nothing has followed for a moment: what has begun is then not going to be completed.
  package mutating func flush() -> [Key] {
    defer { rest = [] }
    return rest.first == 0x1B ? [.escape] : []
  }

  /// The first key, and how many bytes it takes. The key is nil if this program has no use for it. Nil: it is not complete.
  private func first() -> (Key?, Int)? {
    guard let byte = rest.first else { return nil }
    switch byte {
    case 0x1B: return escape()
    case 0x0D, 0x0A: return (.enter, 1)
    case 0x7F, 0x08: return (.backspace, 1)
    case 0..<0x20: return (.control(Character(UnicodeScalar(byte | 0x60))), 1)
    case 0x20..<0x7F: return (.character(Character(UnicodeScalar(byte))), 1)
    default:
      // A byte that begins no character is left out.
      guard 0xC2...0xF4 ~= byte else { return (nil, 1) }
      let count = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
      guard rest.count >= count else { return nil }
      guard let text = String(validating: rest[..<count], as: UTF8.self) else { return (nil, 1) }
      return (text.first.map { .character($0) }, count)
    }
  }

  /// `ESC [ parameters letter`, or `ESC O letter`.
  private func escape() -> (Key?, Int)? {
    guard rest.count >= 2 else { return nil }
    guard rest[1] == UInt8(ascii: "[") || rest[1] == UInt8(ascii: "O") else { return (.escape, 1) }
    guard let end = rest[2...].firstIndex(where: { 0x40...0x7E ~= $0 }) else {
      return rest.count > 16 ? (nil, rest.count) : nil
    }
    let parameter = rest[2..<end].prefix { $0 != UInt8(ascii: ";") }
    let key: Key? =
      switch (rest[end], parameter.first) {
      case (UInt8(ascii: "A"), _): .up
      case (UInt8(ascii: "B"), _): .down
      case (UInt8(ascii: "H"), _), (UInt8(ascii: "~"), UInt8(ascii: "1")): .home
      case (UInt8(ascii: "F"), _), (UInt8(ascii: "~"), UInt8(ascii: "4")): .end
      case (UInt8(ascii: "~"), UInt8(ascii: "5")): .pageUp
      case (UInt8(ascii: "~"), UInt8(ascii: "6")): .pageDown
      default: nil
      }
    return (key, end + 1)
  }
}
