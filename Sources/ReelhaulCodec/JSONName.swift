import Glibc

/// The name of an object's member. It is compared with literals byte by byte: `switch name { case "id": … }`.
///
/// It borrows the reader's bytes, so it must not outlive the call that received it.
package struct JSONName {
  private let borrowed: UnsafeBufferPointer<UInt8>
  /// The name without escapes, if it was written with escapes.
  private let unescaped: [UInt8]?

  init(borrowed: UnsafeBufferPointer<UInt8>) {
    self.borrowed = borrowed
    unescaped = nil
  }

  init(unescaped: [UInt8]) {
    borrowed = UnsafeBufferPointer(start: nil, count: 0)
    self.unescaped = unescaped
  }

  package static func ~= (literal: StaticString, name: JSONName) -> Bool {
    name.withBytes { bytes in
      guard bytes.count == literal.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
      return memcmp(start, literal.utf8Start, bytes.count) == 0
    }
  }

  /// The name as a string that owns its bytes.
  package var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

  var hash: UInt64 { withBytes { FNV1a($0).value } }

  private func withBytes<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
    if let unescaped { unescaped.withUnsafeBufferPointer(body) } else { body(borrowed) }
  }
}
