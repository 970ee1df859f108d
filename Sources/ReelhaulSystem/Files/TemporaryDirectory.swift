import Glibc

/// A new directory below `TMPDIR`. It is removed with its contents when this object is released.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init(prefix: String = "reelhaul") throws(SystemError) {
    path = try Self.make(prefix: prefix)
  }

  /// The directory for temporary files.
  package static var base: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

  /// Makes a directory that is not removed, and returns its path.
  package static func make(prefix: String) throws(SystemError) -> String {
    var template = Array("\(base)/\(prefix).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw .last("mkdtemp \(base)/\(prefix)") }
    return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    removeTree(path)
  }
}
