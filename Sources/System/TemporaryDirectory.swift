import Glibc

/// A new directory below `TMPDIR`, removed with its contents when its owner goes.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init(prefix: String = "reelhaul") throws(SystemError) {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/\(prefix).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw .last("mkdtemp \(base)/\(prefix)") }
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit {
    removeTree(path)
  }
}
