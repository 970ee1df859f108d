import ReelhaulSystem
import TaskCore

extension JSONSchema {
  /// What is wrong with the text of a query field or of a segment of the path, as the end of "it must be …"; nil if it fits.
  func problem(ofText text: String) -> String? {
    switch form {
    case .text(let values, let format, _, let length):
      if !values.isEmpty { return values.contains(text) ? nil : "one of \(values.joined(separator: ", "))" }
      if format == "uuid" { return UniqueID(text) == nil ? "a UUID" : nil }
      if format == "date-time" { return Timestamp(text) == nil ? "a time such as 2026-01-31T20:00:00Z" : nil }
      guard let length, !length.contains(text.unicodeScalars.count) else { return nil }
      return "of \(length.lowerBound) to \(length.upperBound) characters"
    case .integer(let range):
      guard let number = Int64(text), range.contains(number), text == "\(number)" else { return Self.words(range) }
      return nil
    case .number: return Double(text).map(\.isFinite) == true ? nil : "a number"
    case .flag: return text == "true" || text == "false" ? nil : "true or false"
    case .list(let element, _, let most):
      let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      if let most, parts.count > most { return "a list of at most \(most)" }
      return parts.lazy.compactMap { element.problem(ofText: $0) }.first.map {
        "a list, separated by commas, each \($0)"
      }
    case .named(_, let schema): return schema.problem(ofText: text)
    case .either(let schemas):
      let problems = schemas.map { $0.problem(ofText: text) }
      return problems.contains(nil) ? nil : problems.compactMap { $0 }.joined(separator: ", or ")
    case .any, .object, .map: return nil
    }
  }

  private static func words(_ range: ClosedRange<Int64>) -> String {
    switch (range.lowerBound, range.upperBound) {
    case (.min, .max): "a whole number"
    case (let low, .max): "a whole number from \(low)"
    case (let low, let high): "from \(low) to \(high)"
    }
  }
}
