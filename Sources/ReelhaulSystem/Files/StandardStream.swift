import Glibc

/// Standard input, output and error. They are shared with other programs, which may have made them non-blocking.
package enum StandardStream {
  /// Waits as a blocking call would, after one that failed with EAGAIN. `events` is `POLLIN` or `POLLOUT`.
  package static func wait(for events: Int32, at descriptor: Int32) {
    var poll = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    _ = Glibc.poll(&poll, 1, -1)
  }
}
