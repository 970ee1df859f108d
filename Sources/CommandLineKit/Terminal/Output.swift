import Glibc
import ReelhaulCodec
import ReelhaulSystem

/// A file descriptor to write text to: standard output, standard error.
package struct Output: Sendable {
  private let descriptor: Int32
  /// Whether the process ends if its text cannot be written. A command that others depend on goes on without it.
  package var endsOnFailure: Bool
  /// What is then said on standard error: what was done, if the lost text alone would have told it.
  package var lastWords: String?

  package init(descriptor: Int32, endsOnFailure: Bool = false) {
    self.descriptor = descriptor
    self.endsOnFailure = endsOnFailure
  }

  package static let standard = Output(descriptor: STDOUT_FILENO, endsOnFailure: true)
  /// Its failures are ignored, because there is no place to report them.
  package static let error = Output(descriptor: STDERR_FILENO)

  /// Writes all of `text`, and waits while a pipe is full. With ``endsOnFailure`` the process ends with its
  /// ``lastWords``: by SIGPIPE if the reader of a pipe is gone, and with 1 and the error if a result cannot be written (a
  /// full disk). Otherwise the rest of the text is dropped, and the answer says why.
  package func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = write(UnsafeRawBufferPointer($0)) }
  }

  @discardableResult
  package func write(_ bytes: UnsafeRawBufferPointer) -> SystemError? {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if errno == EAGAIN {
        StandardStream.wait(for: POLLOUT, at: descriptor)
      } else if errno != EINTR {
        let error = SystemError.last("write to standard output")
        guard endsOnFailure else { return error }
        let isSilent = error.errno == EPIPE
        for line in [isSilent ? nil : "error: \(error)", lastWords] { line.map { Output.error.line($0) } }
        // SIGPIPE is ignored because of sockets, so the process raises it here.
        if isSilent { ProgramEnd.raise(SIGPIPE) }
        ProgramEnd.exit(1)
      }
    }
    return nil
  }

  package func line(_ text: String = "") {
    write(text + "\n")
  }

  /// One JSON value and a line break.
  package func document(_ body: (inout JSONWriter) -> Void) {
    let bytes = JSONWriter.write(capacity: 4096, body) + [UInt8(ascii: "\n")]
    bytes.withUnsafeBytes { _ = write($0) }
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
