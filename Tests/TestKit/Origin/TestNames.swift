import CResolver
import Glibc
import ReelhaulSystem

/// Host names that only this process can resolve, with addresses from the test. libcurl asks again for each lookup.
package enum TestNames {
  /// The addresses for a lookup, by the number of earlier lookups.
  package typealias Answer = @Sendable (_ lookups: Int) -> [String]

  private static let names = Lock<[String: (answer: Answer, lookups: Int)]>([:])
  private static let isInstalled: Void = rh_set_resolver { name, addresses, capacity in
    guard let name, let addresses else { return 0 }
    let entry = TestNames.names.withLock { names -> (answer: Answer, lookups: Int)? in
      // A name is the same with and without the final dot.
      var key = String(cString: name)
      if key.hasSuffix(".") { key.removeLast() }
      guard let entry = names[key] else { return nil }
      names[key]?.lookups += 1
      return entry
    }
    // Others are looked up while this answer takes its time.
    guard let entry else { return 0 }
    let text = entry.answer(entry.lookups).joined(separator: " ")
    guard text.utf8.count < capacity else { return 0 }
    strcpy(addresses, text)
    return 1
  }

  /// A new name for `answer`.
  package static func name(_ answer: @escaping Answer) -> String {
    _ = isInstalled
    let name = "host-\(UInt32.random(in: 0 ... .max)).test"
    names.withLock { $0[name] = (answer, 0) }
    return name
  }

  package static func name(for addresses: String...) -> String { name { _ in addresses } }

  /// The number of lookups of `name`.
  package static func lookups(of name: String) -> Int { names.withLock { $0[name]?.lookups ?? 0 } }
}
