import Glibc

/// The name of an object's member, compared with literals byte by byte: `switch name { case "id": … }`.
///
/// It borrows the reader's bytes and must not outlive the call it was handed to.
package struct JSONName {
  private let borrowed: UnsafeBufferPointer<UInt8>
  /// The name without escapes, if it was written with escapes.
  private let unescaped: [UInt8]?
  /// FNV-1a of the name.
  package let hash: UInt64

  init(borrowed: UnsafeBufferPointer<UInt8>) {
    self.borrowed = borrowed
    unescaped = nil
    hash = Self.hash(borrowed)
  }

  init(unescaped: [UInt8]) {
    borrowed = UnsafeBufferPointer(start: nil, count: 0)
    self.unescaped = unescaped
    hash = unescaped.withUnsafeBufferPointer(Self.hash)
  }

  package static func ~= (literal: StaticString, name: JSONName) -> Bool {
    name.withBytes { bytes in
      guard bytes.count == literal.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
      return memcmp(start, literal.utf8Start, bytes.count) == 0
    }
  }

  /// The name as a string of its own.
  package var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

  /// FNV-1a, 64 bits.
  package static func hash(of name: StaticString) -> UInt64 { name.withUTF8Buffer(hash) }

  private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }

  private func withBytes<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
    if let unescaped { unescaped.withUnsafeBufferPointer(body) } else { body(borrowed) }
  }
}
