/// Why bytes could not be decoded: the problem, the field and the byte.
package struct DecodingFailure: Error, Hashable, Sendable {
  package enum Problem: Hashable, Sendable {
    case emptyInput
    case inputTooLong(limit: Int)
    case invalidUTF8
    case unexpectedEnd
    /// The value has another type, or the byte does not begin a value.
    case expected(String)
    case trailingBytes
    case tooDeep(limit: Int)
    case tooManyMembers(limit: Int)
    case duplicateName(String)
    case unescapedControlCharacter
    case invalidEscape
    case loneSurrogate
    case stringTooLong(limit: Int)
    case invalidNumber
    case notAnInteger
    case integerOverflow
    case missing(String)
    /// The member does not exist; `known` lists those that do.
    case unknownName(String, known: [String])
    /// The JSON is well-formed, but its value is not allowed. The text says which values are.
    case invalidValue(String)
  }

  package var problem: Problem
  /// The field's path from the outermost object inwards: `["task", "expect", "sha256"]`. Elements of arrays appear as
  /// `[2]`.
  package var path: [String]
  /// The offset of the wrong byte, from 0.
  package var offset: Int

  package init(_ problem: Problem, path: [String] = [], offset: Int) {
    self.problem = problem
    self.path = path
    self.offset = offset
  }

  /// The same failure with one more outer step in its path.
  package func within(_ step: String) -> DecodingFailure {
    DecodingFailure(problem, path: [step] + path, offset: offset)
  }
}

extension DecodingFailure: CustomStringConvertible {
  package var description: String {
    let field = path.reduce(into: "") { text, step in
      text += text.isEmpty || step.hasPrefix("[") ? step : ".\(step)"
    }
    return "\(field.isEmpty ? "" : "\(field): ")\(problem) (byte \(offset))"
  }
}

extension DecodingFailure.Problem: CustomStringConvertible {
  package var description: String {
    switch self {
    case .emptyInput: "there is nothing to read"
    case .inputTooLong(let limit): "longer than \(limit) bytes"
    case .invalidUTF8: "not valid UTF-8"
    case .unexpectedEnd: "ends in the middle of a value"
    case .expected(let what): "expected \(what)"
    case .trailingBytes: "something follows the value"
    case .tooDeep(let limit): "nested deeper than \(limit) levels"
    case .tooManyMembers(let limit): "more than \(limit) members in one object"
    case .duplicateName(let name): "the name \"\(name)\" appears twice"
    case .unescapedControlCharacter: "a control character in a string must be escaped"
    case .invalidEscape: "not an escape sequence of JSON"
    case .loneSurrogate: "half of a surrogate pair"
    case .stringTooLong(let limit): "longer than \(limit) bytes"
    case .invalidNumber: "not a number of JSON"
    case .notAnInteger: "expected an integer"
    case .integerOverflow: "the number does not fit"
    case .missing(let name): "\"\(name)\" is missing"
    case .unknownName(let name, let known):
      "there is no such field; "
        + (Suggestion.nearest(to: name, in: known).map { "did you mean \"\($0)\"?" }
          ?? "there are \(known.joined(separator: ", "))")
    case .invalidValue(let message): message
    }
  }
}
