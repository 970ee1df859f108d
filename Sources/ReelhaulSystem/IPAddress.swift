import Glibc

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) becomes its IPv4 address.
package enum IPAddress: Hashable, Sendable {
  case v4(UInt32)
  case v6(UInt128)

  /// From the bytes of a `sockaddr_in` or `sockaddr_in6`; nil for any other family, and for too few bytes.
  package init?(sockaddr bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= MemoryLayout<sa_family_t>.size else { return nil }
    switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET where bytes.count >= 8:
      self = .v4(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    case AF_INET6 where bytes.count >= 24:
      self = .unmapped(UInt128(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt128.self)))
    default: return nil
    }
  }

  /// Parses the usual text forms, without brackets, zone, octal numbers or short IPv4 forms.
  package init?(_ text: some StringProtocol) {
    let text = String(text)
    var four: UInt32 = 0
    var six: UInt128 = 0
    if inet_pton(AF_INET, text, &four) == 1 {
      self = .v4(UInt32(bigEndian: four))
    } else if inet_pton(AF_INET6, text, &six) == 1 {
      self = .unmapped(UInt128(bigEndian: six))
    } else {
      return nil
    }
  }

  private static func unmapped(_ bits: UInt128) -> IPAddress {
    bits >> 32 == 0xFFFF ? .v4(UInt32(truncatingIfNeeded: bits)) : .v6(bits)
  }

  /// The IPv4 address that a translator or tunnel would reach for this address: NAT64 (64:ff9b::/96), 6to4 (2002::/16)
  /// and the deprecated IPv4-compatible form (::/96).
  package var embedded: IPAddress? {
    guard case .v6(let bits) = self else { return nil }
    if bits >> 32 == 0x0064_FF9B << 64 || (bits >> 32 == 0 && bits > 1) { return .v4(UInt32(truncatingIfNeeded: bits)) }
    if bits >> 112 == 0x2002 { return .v4(UInt32(truncatingIfNeeded: bits >> 80)) }
    return nil
  }
}

extension IPAddress: CustomStringConvertible {
  package var description: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
      let capacity = socklen_t(buffer.count)
      switch self {
      case .v4(let bits):
        _ = withUnsafeBytes(of: bits.bigEndian) { inet_ntop(AF_INET, $0.baseAddress, buffer.baseAddress, capacity) }
      case .v6(let bits):
        _ = withUnsafeBytes(of: bits.bigEndian) { inet_ntop(AF_INET6, $0.baseAddress, buffer.baseAddress, capacity) }
      }
      return buffer.baseAddress.map { String(cString: $0) } ?? ""
    }
  }
}
