import Glibc

package enum ProcessEnvironment {
  /// This process's environment variables.
  package static var all: [String: String] {
    var values: [String: String] = [:]
    forEach { text in
      if let pair = String(cString: text).keyAndValue { values[pair.key] = pair.value }
    }
    return values
  }

  /// The names of the variables that are not UTF-8. In ``all`` they have other values than they should.
  package static var unreadable: [String] {
    var names: [String] = []
    forEach { text in
      guard String(validatingCString: text) == nil, let pair = String(cString: text).keyAndValue else { return }
      names.append(pair.key)
    }
    return names
  }

  private static func forEach(_ body: (UnsafePointer<CChar>) -> Void) {
    var entry = environ
    while let text = entry.pointee {
      body(text)
      entry += 1
    }
  }
}
