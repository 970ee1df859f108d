import CReelhaulUV

package struct PollEvents: OptionSet, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  package static let readable = PollEvents(rawValue: Int32(UV_READABLE.rawValue))
  package static let writable = PollEvents(rawValue: Int32(UV_WRITABLE.rawValue))
  /// The descriptor has failed. Both directions are also reported, so that the next call on the descriptor returns the
  /// error.
  package static let failed = PollEvents(rawValue: 1 << 30)
}

/// Watches a file descriptor that belongs to a library. Only one `LoopPoll` may watch a descriptor. Close it before
/// the descriptor.
// @unchecked: touched only on the loop's thread, which every call checks.
package final class LoopPoll: @unchecked Sendable {
  private let loop: EventLoop
  private let handle = LoopHandle<uv_poll_t>()
  private let handler: @Sendable (PollEvents) -> Void
  private var watched: PollEvents = []
  private var isClosed = false

  /// Call it on the loop. Throws if the descriptor cannot be watched (a plain file, EBADF).
  package init(
    loop: EventLoop, fd: Int32, _ handler: @escaping @Sendable (PollEvents) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.handler = handler
    let code = uv_poll_init(loop.raw, handle.pointer, fd)
    guard code == 0 else { throw SystemError(errno: -code, operation: "watch descriptor \(fd)") }
    _ = handle.open(context: self)
  }

  /// Sets the events to report from now on. An empty set pauses the reports.
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
      // libuv stops watching a failed descriptor.
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
