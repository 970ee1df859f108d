import ReelhaulSystem
import TaskCore

/// The content of one log line, and its encoding.
struct LogLine {
  var level: LogLevel
  var message: String
  var fields: [(String, LogValue)]
  var time: Timestamp

  /// Appends the line's bytes, including the line break.
  func encode(_ format: LogFormat, into bytes: inout [UInt8]) {
    switch format {
    case .logfmt:
      bytes.append(text: "ts=\(time) level=\(level.name) msg=")
      bytes.append(logfmt: message)
      appendLogfmtFields(to: &bytes)
    case .journal:
      bytes.append(text: "<\(level.priority)>msg=")
      bytes.append(logfmt: message)
      appendLogfmtFields(to: &bytes)
    case .json:
      bytes.append(text: "{\"ts\":\"\(time)\",\"level\":\"\(level.name)\",\"msg\":")
      bytes.append(json: message)
      for (key, value) in fields {
        bytes.append(text: ",")
        bytes.append(json: key)
        bytes.append(text: ":")
        switch value {
        case .text(let text): bytes.append(json: text)
        case .integer(let integer): bytes.append(text: String(integer))
        case .double(let double): bytes.append(text: double.isFinite ? String(double) : "null")
        case .bool(let bool): bytes.append(text: bool ? "true" : "false")
        }
      }
      bytes.append(UInt8(ascii: "}"))
    }
    bytes.append(UInt8(ascii: "\n"))
  }

  private func appendLogfmtFields(to bytes: inout [UInt8]) {
    for (key, value) in fields {
      bytes.append(UInt8(ascii: " "))
      bytes.append(logfmtKey: key)
      bytes.append(UInt8(ascii: "="))
      switch value {
      case .text(let text): bytes.append(logfmt: text)
      case .integer(let integer): bytes.append(text: String(integer))
      case .double(let double): bytes.append(text: String(double))
      case .bool(let bool): bytes.append(text: bool ? "true" : "false")
      }
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(text: String) {
    append(contentsOf: text.utf8)
  }

  /// Quotes the text if it is empty or contains a space, a quote, `=` or a character that is unsafe on a terminal.
  fileprivate mutating func append(logfmt text: String) {
    let isPlain = !text.isEmpty && text.unicodeScalars.allSatisfy(\.isPlainInLogfmt)
    if isPlain { append(text: text) } else { append(json: text) }
  }

  /// A key cannot be quoted, so an underscore stands for each character that a value is quoted for.
  fileprivate mutating func append(logfmtKey text: String) {
    if text.isEmpty { append(UInt8(ascii: "_")) }
    for scalar in text.unicodeScalars { append(contentsOf: (scalar.isPlainInLogfmt ? scalar : "_").utf8) }
  }

  /// Writes a JSON string. Characters that are unsafe on a terminal are escaped, so they cannot reach it.
  fileprivate mutating func append(json text: String) {
    append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": append(text: "\\\"")
      case "\\": append(text: "\\\\")
      case "\n": append(text: "\\n")
      case "\t": append(text: "\\t")
      case _ where scalar.isUnsafeOnTerminal:
        for unit in scalar.utf16 {
          let digits = String(unit, radix: 16)
          append(text: "\\u" + String(repeating: "0", count: 4 - digits.count) + digits)
        }
      default: append(contentsOf: scalar.utf8)
      }
    }
    append(UInt8(ascii: "\""))
  }
}

extension Unicode.Scalar {
  fileprivate var isPlainInLogfmt: Bool { !" \"=".unicodeScalars.contains(self) && !isUnsafeOnTerminal }
}
