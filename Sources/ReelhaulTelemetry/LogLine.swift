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
      bytes.append(text: " \(key)=")
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

  /// Quotes the text if it is empty or contains a space, a quote, `=` or a control character.
  fileprivate mutating func append(logfmt text: String) {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x3d && $0 != 0x7f }
    if isPlain { append(text: text) } else { append(json: text) }
  }

  /// Writes a JSON string. Control characters are escaped, so they cannot reach the terminal.
  fileprivate mutating func append(json text: String) {
    append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): append(text: "\\\"")
      case UInt8(ascii: "\\"): append(text: "\\\\")
      case UInt8(ascii: "\n"): append(text: "\\n")
      case UInt8(ascii: "\t"): append(text: "\\t")
      case 0..<0x20, 0x7f:
        append(text: "\\u00")
        append(text: byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16))
      default: append(byte)
      }
    }
    append(UInt8(ascii: "\""))
  }
}
