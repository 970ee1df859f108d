import CReelhaulUV

package struct PollEvents: OptionSet, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  package static let readable = PollEvents(rawValue: Int32(UV_READABLE.rawValue))
  package static let writable = PollEvents(rawValue: Int32(UV_WRITABLE.rawValue))
  /// The descriptor has failed; both directions are reported too, so that the next call meets the error.
  package static let failed = PollEvents(rawValue: 1 << 30)
}

/// Watches a file descriptor that a library owns. Close it before the descriptor; one per descriptor.
// @unchecked: touched on the loop's thread alone, which every call checks.
package final class LoopPoll: @unchecked Sendable {
  private let loop: EventLoop
  private let handle = LoopHandle<uv_poll_t>()
  private let handler: @Sendable (PollEvents) -> Void
  private var watched: PollEvents = []
  private var isClosed = false

  /// On the loop only. Throws where the descriptor cannot be watched (a plain file, EBADF).
  package init(
    loop: EventLoop, fd: Int32, _ handler: @escaping @Sendable (PollEvents) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.handler = handler
    let code = uv_poll_init(loop.raw, handle.pointer, fd)
    guard code == 0 else { throw SystemError(errno: -code, operation: "watch descriptor \(fd)") }
    _ = handle.open(context: self)
  }

  /// Which events are reported from now on; none pauses it.
  package func watch(_ events: PollEvents) {
    loop.checkIsolated()
    guard !isClosed, events != watched else { return }
    watched = events
    if events.isEmpty {
      uv_poll_stop(handle.pointer)
      return
    }
    uv_poll_start(handle.pointer, events.rawValue) { handle, status, events in
      guard let poll = LoopHandle.from(handle).owner(as: LoopPoll.self) else { return }
      // libuv watches a failed descriptor no longer.
      if status < 0 { poll.watched = [] }
      poll.handler(status < 0 ? [.readable, .writable, .failed] : PollEvents(rawValue: events))
    }
  }

  package func close() {
    loop.checkIsolated()
    isClosed = true
    handle.close()
  }
}
