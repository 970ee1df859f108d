import Glibc

/// A new directory below `TMPDIR`, removed with its contents when its owner goes.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init(prefix: String = "reelhaul") throws(SystemError) {
    path = try Self.make(prefix: prefix)
  }

  /// Where temporary files go.
  package static var base: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

  /// A new directory that stays; its path.
  package static func make(prefix: String) throws(SystemError) -> String {
    var template = Array("\(base)/\(prefix).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw .last("mkdtemp \(base)/\(prefix)") }
    return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    removeTree(path)
  }
}
