/// FNV-1a, 64 bits: the same value in every process and for all time.
///
/// Names of prepared statements, checksums of migrations and ids of commands without one come from it; databases hold
/// the last two. It does not resist an attacker.
package struct FNV1a {
  package private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

  package init() {}

  /// Of `bytes`. Not generic: from another module, each byte would cost several calls.
  package init(_ bytes: String.UTF8View) {
    for byte in bytes { combine(byte) }
  }

  package mutating func combine(_ byte: UInt8) {
    value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
  }

  /// Its eight bytes, the lowest first.
  package mutating func combine(_ number: UInt64) {
    for shift in stride(from: 0, to: 64, by: 8) { combine(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
  }
}
