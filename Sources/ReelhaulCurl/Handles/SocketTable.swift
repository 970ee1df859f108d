import CReelhaulCurl
import Glibc
import ReelhaulSystem

/// The sockets of one multi handle, and how the loop watches them.
///
/// A connection's own socket keeps its watcher while it rests between two requests. What it receives then was not asked
/// for: libcurl (before 8.1) would take it for the answer to the next request, a later task's file. So it is watched,
/// looked at once more before that request is sent, and again when something comes back: what came before the server had
/// the request is no answer to it. A connection that was not silent is shut. libcurl sees that, and uses another one; a
/// request that was sent over it already is sent again.
///
/// What libcurl opens by itself (the resolver's wake-up) is forgotten as soon as libcurl stops watching it, for its end
/// is not announced.
// @unchecked: touched on the loop's thread alone.
final class SocketTable: @unchecked Sendable {
  private let loop: EventLoop
  private let onEvents: @Sendable (Int32, PollEvents) -> Void
  private var polls: [Int32: LoopPoll] = [:]
  private var owned: Set<Int32> = []
  /// Those that libcurl has watched for a transfer.
  private var used: Set<Int32> = []
  private var resting: Set<Int32> = []
  /// Those that have rested and got a request, and have received nothing since.
  private var asked: Set<Int32> = []

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
    let hasRested = resting.remove(descriptor) != nil
    guard what != CURL_POLL_REMOVE else {
      used.remove(descriptor)
      asked.remove(descriptor)
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
    used.insert(descriptor)
    if hasRested { asked.insert(descriptor) }
    if let poll = polls[descriptor] {
      poll.watch(events)
      return true
    }
    do throws(SystemError) {
      let poll = try LoopPoll(loop: loop, fd: descriptor) { [unowned self] in happened(descriptor, $0) }
      poll.watch(events)
      polls[descriptor] = poll
      return true
    } catch {
      return false
    }
  }

  private func happened(_ descriptor: Int32, _ events: PollEvents) {
    if resting.contains(descriptor) { return listen(descriptor) }
    if events.contains(.readable), asked.remove(descriptor) != nil, hasUnacknowledged(descriptor) { shut(descriptor) }
    onEvents(descriptor, events)
  }

  /// Something that was sent has not reached the other end yet, as far as TCP knows.
  private func hasUnacknowledged(_ descriptor: Int32) -> Bool {
    var bytes: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &bytes) == 0 && bytes > 0
  }

  /// A transfer of HTTP/1 over `descriptor` has ended and its connection is kept. `hasSurplus`: more than its response has been
  /// received already.
  func rest(_ descriptor: Int32, hasSurplus: Bool) {
    guard owned.contains(descriptor), !used.contains(descriptor) else { return }
    if hasSurplus { return shut(descriptor) }
    resting.insert(descriptor)
    listen(descriptor)
  }

  /// A request is about to be sent, over one of those that rest or over a new connection.
  func look() {
    guard !resting.isEmpty else { return }
    var ends = resting.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    guard poll(&ends, nfds_t(ends.count), 0) > 0 else { return }
    for end in ends where end.revents != 0 { listen(end.fd) }
  }

  private func listen(_ descriptor: Int32) {
    var byte: UInt8 = 0
    switch recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) {
    case 1: shut(descriptor)
    case -1 where errno == EAGAIN: polls[descriptor]?.watch(.readable)
    // The server has ended it, which libcurl sees by itself.
    default:
      resting.remove(descriptor)
      polls[descriptor]?.watch([])
    }
  }

  /// Also takes what is there: while something is, a connection of TLS counts as alive.
  private func shut(_ descriptor: Int32) {
    resting.remove(descriptor)
    polls[descriptor]?.watch([])
    shutdown(descriptor, Int32(SHUT_RDWR))
    withUnsafeTemporaryAllocation(byteCount: 1 << 14, alignment: 1) { buffer in
      var calls = 0
      while calls < 256, recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) > 0 { calls += 1 }
    }
  }

  /// Ends a connection's socket: the watcher first, then the descriptor.
  func close(_ descriptor: Int32) {
    polls.removeValue(forKey: descriptor)?.close()
    owned.remove(descriptor)
    used.remove(descriptor)
    resting.remove(descriptor)
    asked.remove(descriptor)
    Glibc.close(descriptor)
  }

  /// Stops watching everything that is left.
  func closeAll() {
    for poll in polls.values { poll.close() }
    polls.removeAll()
  }
}
