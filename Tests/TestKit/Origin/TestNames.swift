import CResolver
import Glibc
import ReelhaulSystem

/// Host names that only this process can resolve, to what a test says. Each lookup of libcurl asks anew.
package enum TestNames {
  /// The addresses for a lookup, by how many there have been before.
  package typealias Answer = @Sendable (_ lookups: Int) -> [String]

  private static let names = Lock<[String: (answer: Answer, lookups: Int)]>([:])
  private static let isInstalled: Void = rh_set_resolver { name, addresses, capacity in
    guard let name, let addresses else { return 0 }
    let found = TestNames.names.withLock { names -> [String]? in
      // With the dot of the root or without, a name is the same.
      var key = String(cString: name)
      if key.hasSuffix(".") { key.removeLast() }
      guard let entry = names[key] else { return nil }
      names[key]?.lookups += 1
      return entry.answer(entry.lookups)
    }
    guard let text = found?.joined(separator: " "), text.utf8.count < capacity else { return 0 }
    strcpy(addresses, text)
    return 1
  }

  /// A name of its own for `answer`.
  package static func name(_ answer: @escaping Answer) -> String {
    _ = isInstalled
    let name = "host-\(UInt32.random(in: 0 ... .max)).test"
    names.withLock { $0[name] = (answer, 0) }
    return name
  }

  package static func name(for addresses: String...) -> String { name { _ in addresses } }

  /// How often `name` was looked up.
  package static func lookups(of name: String) -> Int { names.withLock { $0[name]?.lookups ?? 0 } }
}
