import Glibc

/// A failed system call: the operation and its `errno`.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  package var errno: Int32
  /// The call and its object: `open /videos/a.mp4`.
  package var operation: String

  package init(errno: Int32, operation: String) {
    self.errno = errno
    self.operation = operation
  }

  /// The error of the call that has just failed on this thread.
  package static func last(_ operation: String) -> SystemError {
    SystemError(errno: Glibc.errno, operation: operation)
  }

  /// A call that stays on one file system met `path`, which is on another one.
  package static func otherFileSystem(_ path: String) -> SystemError {
    SystemError(errno: EXDEV, operation: "\(path) is on another file system, which is not entered")
  }

  /// `open /videos/a.mp4: No such file or directory`
  package var description: String { "\(operation): \(reason)" }

  /// `No such file or directory`
  package var reason: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      strerror_r(errno, buffer.baseAddress!, buffer.count) == 0
        ? String(cString: buffer.baseAddress!) : "error \(errno)"
    }
  }
}
