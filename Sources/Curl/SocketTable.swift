import CCurl
import Glibc
import System

/// The sockets of one multi handle, and how the loop watches them.
///
/// A connection's own socket keeps its watcher while it is idle between two requests. What libcurl opens by itself (the
/// resolver's wake-up) is forgotten as soon as libcurl stops watching it, for its end is not announced.
final class SocketTable {
  private let loop: EventLoop
  private let onEvents: @Sendable (Int32, PollEvents) -> Void
  private var polls: [Int32: LoopPoll] = [:]
  private var owned: Set<Int32> = []

  init(loop: EventLoop, onEvents: @escaping @Sendable (Int32, PollEvents) -> Void) {
    self.loop = loop
    self.onEvents = onEvents
  }

  /// `descriptor` was opened for a connection and will end with ``close(_:)``.
  func own(_ descriptor: Int32) {
    owned.insert(descriptor)
  }

  /// libcurl's wish for a socket: `CURL_POLL_IN`, `_OUT`, `_INOUT`, `_REMOVE` or `_NONE`. False where it cannot be
  /// watched.
  func watch(_ descriptor: Int32, what: Int32) -> Bool {
    guard what != CURL_POLL_REMOVE else {
      if owned.contains(descriptor) {
        polls[descriptor]?.watch([])
      } else {
        polls.removeValue(forKey: descriptor)?.close()
      }
      return true
    }
    var events: PollEvents = []
    if what & CURL_POLL_IN != 0 { events.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { events.insert(.writable) }
    if let poll = polls[descriptor] {
      poll.watch(events)
      return true
    }
    do throws(SystemError) {
      let poll = try LoopPoll(loop: loop, fd: descriptor) { [onEvents] in onEvents(descriptor, $0) }
      poll.watch(events)
      polls[descriptor] = poll
      return true
    } catch {
      return false
    }
  }

  /// Ends a connection's socket: the watcher first, then the descriptor.
  func close(_ descriptor: Int32) {
    polls.removeValue(forKey: descriptor)?.close()
    owned.remove(descriptor)
    Glibc.close(descriptor)
  }

  /// Stops watching everything that is left.
  func closeAll() {
    for poll in polls.values { poll.close() }
    polls.removeAll()
  }
}
