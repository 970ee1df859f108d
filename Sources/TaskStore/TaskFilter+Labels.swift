import ReelhaulSystem

/// Why labels select nothing.
package enum LabelProblem: Error, Hashable, Sendable, CustomStringConvertible {
  case malformed(String)
  /// Values of one label, of which a task has one.
  case twoValues(name: String, String, String)

  package var description: String {
    switch self {
    case .malformed(let text): "\"\(text.prefix(200))\" is no label: it must be K=V or K"
    case .twoValues(let name, let one, let other):
      "no task has two values of the label \"\(name)\": \"\(one.prefix(100))\" and \"\(other.prefix(100))\""
    }
  }
}

extension TaskFilter {
  /// The labels that a task must have, of texts such as `K=V`, or `K` for any value. Where a name comes again, its value
  /// counts.
  package static func labels(_ texts: [String]) throws(LabelProblem) -> [String: String?] {
    var labels: [String: String?] = [:]
    for text in texts {
      let pair = text.keyAndValue
      let (name, value) = (pair?.key ?? text, pair?.value)
      guard !name.isEmpty else { throw .malformed(text) }
      let known = labels[name] ?? nil
      if let known, let value, known != value { throw .twoValues(name: name, known, value) }
      labels.updateValue(known ?? value, forKey: name)
    }
    return labels
  }
}
