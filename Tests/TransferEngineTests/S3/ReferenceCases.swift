import ReelhaulCodec
import ReelhaulSystem
import TestKit

@testable import TransferEngine

/// Asks a Python program of others for its answers to cases.
enum ReferenceCases {
  private static let resources =
    #filePath.split(separator: "/").dropLast(2).map { "/\($0)" }.joined() + "/Resources"

  /// One line of output for each case.
  static func answers(_ script: String, _ cases: [[String: String]]) throws -> [String] {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/cases"
    let lines = cases.map { "{\($0.map { "\(quoted($0.key)): \($0.value)" }.joined(separator: ", "))}\n" }
    try TextFile.write(lines.joined(), to: path)
    let output = try Peers.run(Peers.python(), ["\(resources)/\(script)", path])
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// A string of JSON, as Python writes it.
  static func quoted(_ text: String) -> String {
    let units = text.utf16.map { unit in
      switch unit {
      case 0x22: "\\\""
      case 0x5C: "\\\\"
      case 0x20..<0x7F: String(Unicode.Scalar(UInt8(unit)))
      default: "\\u" + String(0x10000 + Int(unit), radix: 16).dropFirst()
      }
    }
    return "\"\(units.joined())\""
  }

  /// Keys with what makes trouble in URLs and XML.
  static func keys(_ count: Int, seed: UInt64) -> [String] {
    var random = SplitMix64(seed: seed)
    let pieces = [
      "a", "B", "7", "-", "_", ".", "~", "..", "/", "//", "/./", "/../", " ", "+", "%", "%20", "%2F", "&", "=", "?",
      "#", "é", "e\u{301}", "日本", "🎬",
      "\"", "'", "<", ">", "\\", "|", "^", "`", "{", "}", "[", "]", "@", ":", ",", ";", "!", "*", "(", ")", "$", "\t",
    ]
    return (0..<count).map { _ in
      (0..<Int.random(in: 1...12, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
    }
  }
}
