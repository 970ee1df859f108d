import Glibc
import ReelhaulCodec
import ReelhaulSystem

/// A file descriptor to write text to: standard output, standard error.
package struct Output: Sendable {
  private let descriptor: Int32

  package init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  package static let standard = Output(descriptor: STDOUT_FILENO)
  package static let error = Output(descriptor: STDERR_FILENO)

  /// Writes all of `text`, and waits while a pipe is full. If the reader of a pipe is gone, the process ends silently,
  /// as with SIGPIPE. If a result cannot be written (a full disk), the process ends with 1. Failures of standard error
  /// are ignored, because there is no place to report them.
  package func write(_ text: String) {
    var text = text
    text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
  }

  package func write(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if errno == EPIPE {
        // SIGPIPE is ignored because of sockets, so the process raises it here.
        ProgramEnd.raise(SIGPIPE)
      } else if errno == EAGAIN {
        var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        Glibc.poll(&poll, 1, -1)
      } else if errno != EINTR {
        guard descriptor == STDOUT_FILENO else { return }
        Output.error.line("error: \(SystemError.last("write to standard output"))")
        ProgramEnd.exit(1)
      }
    }
  }

  package func line(_ text: String = "") {
    write(text + "\n")
  }

  /// One JSON value and a line break.
  package func document(_ body: (inout JSONWriter) -> Void) {
    let bytes = JSONWriter.write(capacity: 4096, body) + [UInt8(ascii: "\n")]
    bytes.withUnsafeBytes { write($0) }
  }

  /// A JSON array of `elements` and a line break.
  package func documents<Element>(_ elements: [Element], _ write: (Element, inout JSONWriter) -> Void) {
    document { json in
      json.array { json in
        for element in elements { write(element, &json) }
      }
    }
  }
}
