import Glibc

/// Standard input, output and error. They are shared with other programs, which may have made them non-blocking.
package enum StandardStream {
  /// The caller may have closed some of them. Files that are opened next must not get their numbers and be written to.
  package static func openAll() {
    while true {
      let descriptor = open("/dev/null", O_RDONLY)
      guard (0...STDERR_FILENO).contains(descriptor) else {
        close(descriptor)
        return
      }
    }
  }

  /// Waits as a blocking call would, after one that failed with EAGAIN. `events` is `POLLIN` or `POLLOUT`. Returns false if
  /// so many milliseconds were over, or a signal came, before the call can go on.
  @discardableResult
  package static func wait(for events: Int32, at descriptor: Int32, milliseconds: Int32 = -1) -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    let count = Glibc.poll(&poll, 1, milliseconds)
    // Any other error is one of whoever uses the descriptor.
    return count > 0 || count < 0 && errno != EINTR
  }
}
