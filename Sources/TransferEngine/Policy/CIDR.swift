import ReelhaulSystem

/// A block of addresses: `10.0.0.0/8`, `fc00::/7`, or a single address.
package struct CIDR: Hashable, Sendable {
  package let base: IPAddress
  /// The number of leading bits that count: 0…32 or 0…128.
  package let prefix: Int

  /// Parses `ADDRESS/PREFIX` or `ADDRESS`. Bits set beyond the prefix are an error, because `10.1.2.3/8` may mean
  /// either the address or the network.
  package init(_ text: some StringProtocol) throws(InvalidNetwork) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let base = IPAddress(first) else {
      throw InvalidNetwork(text: String(text), reason: "it is not an IP address")
    }
    let width = base.width
    guard let prefix = parts.count == 1 ? width : Int(parts[1]), (0...width).contains(prefix) else {
      throw InvalidNetwork(text: String(text), reason: "the prefix is not a number from 0 to \(width)")
    }
    self.base = base
    self.prefix = prefix
    guard base.leading(prefix) << UInt128(width - prefix) == base.bits else {
      throw InvalidNetwork(text: String(text), reason: "it has bits set beyond its prefix")
    }
  }

  /// A block of a constant table. A mistake there is a defect of this program.
  init(constant text: StaticString) {
    do {
      try self.init(text.description)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  package func contains(_ address: IPAddress) -> Bool {
    address.width == base.width && address.leading(prefix) == base.leading(prefix)
  }
}

extension CIDR: CustomStringConvertible {
  package var description: String { "\(base)/\(prefix)" }
}

/// A text that is not a network.
package struct InvalidNetwork: Error, Hashable, Sendable, CustomStringConvertible {
  package var text: String
  package var reason: String

  package var description: String {
    "\"\(text)\" is not a network: \(reason). Write for example 10.0.0.0/8 or fd00::/8."
  }
}

extension IPAddress {
  var width: Int {
    switch self {
    case .v4: 32
    case .v6: 128
    }
  }

  fileprivate var bits: UInt128 {
    switch self {
    case .v4(let bits): UInt128(bits)
    case .v6(let bits): bits
    }
  }

  /// The first `count` bits, as a number.
  fileprivate func leading(_ count: Int) -> UInt128 {
    bits >> UInt128(width - count)
  }
}
