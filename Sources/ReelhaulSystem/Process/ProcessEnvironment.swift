import Glibc

package enum ProcessEnvironment {
  /// This process's environment variables.
  package static var all: [String: String] {
    var values: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      if let pair = String(cString: text).keyAndValue { values[pair.key] = pair.value }
      entry += 1
    }
    return values
  }
}
