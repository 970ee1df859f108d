import CReelhaulCurl
import Glibc
import ReelhaulSystem

/// The sockets of one multi handle, and how the loop watches them.
///
/// A connection's own socket keeps its watcher while the connection rests between two requests. Nobody has asked for
/// bytes that arrive then, but libcurl (before 8.1) would take them for the answer to the next request: a later task's
/// file. So the socket is watched, checked once more before the next request is sent, and checked again when bytes
/// arrive: bytes that came before the server had the request are not its answer. A connection that received bytes is
/// shut. libcurl notices this and uses another connection; a request that was already sent over it is sent again.
///
/// libcurl does not tell when a connection rests no more: if it sends a request, receives the beginning of the answer and
/// is paused, all at once, it wants to watch nothing, before and after. So ``use(_:)`` tells it.
///
/// Sockets that libcurl opens by itself (the resolver's wake-up) are forgotten as soon as libcurl stops watching them,
/// because libcurl does not report their end.
// @unchecked: touched only on the loop's thread.
final class SocketTable: @unchecked Sendable {
  private let loop: EventLoop
  private let onEvents: @Sendable (Int32, PollEvents) -> Void
  private var polls: [Int32: LoopPoll] = [:]
  private var owned: Set<Int32> = []
  /// The sockets that libcurl has watched for a transfer.
  private var used: Set<Int32> = []
  private var resting: [Int32: SocketRoute] = [:]
  /// The sockets that have rested, then got a request, and have received nothing since.
  private var asked: Set<Int32> = []

  init(loop: EventLoop, onEvents: @escaping @Sendable (Int32, PollEvents) -> Void) {
    self.loop = loop
    self.onEvents = onEvents
  }

  /// Notes that `descriptor` was opened for a connection. ``close(_:)`` will end it.
  func own(_ descriptor: Int32) {
    owned.insert(descriptor)
  }

  /// Carries out libcurl's request to watch a socket: `CURL_POLL_IN`, `_OUT`, `_INOUT`, `_REMOVE` or `_NONE`. False if
  /// the socket cannot be watched.
  func watch(_ descriptor: Int32, what: Int32) -> Bool {
    if resting[descriptor] != nil { endRest(descriptor) }
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

  /// Whether the socket is open, and libcurl watches it for nothing.
  func isLeft(_ descriptor: Int32) -> Bool { owned.contains(descriptor) && !used.contains(descriptor) }

  private func happened(_ descriptor: Int32, _ events: PollEvents) {
    if resting[descriptor] != nil { return listen(descriptor) }
    if events.contains(.readable), asked.remove(descriptor) != nil, hasUnacknowledged(descriptor) { shut(descriptor) }
    onEvents(descriptor, events)
  }

  /// Whether sent bytes have not been acknowledged by the other end's TCP yet.
  private func hasUnacknowledged(_ descriptor: Int32) -> Bool {
    var bytes: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &bytes) == 0 && bytes > 0
  }

  /// A transfer of HTTP/1 over `descriptor` has ended, and its connection is kept. `hasSurplus`: more bytes than the
  /// response have already been received.
  func rest(_ descriptor: Int32, hasSurplus: Bool) {
    guard owned.contains(descriptor), !used.contains(descriptor) else { return }
    guard !hasSurplus, let route = SocketRoute(descriptor) else { return shut(descriptor) }
    resting[descriptor] = route
    listen(descriptor)
  }

  /// A request is about to be sent over the connection of this route. Checks the resting ones first.
  func use(_ route: SocketRoute) {
    look()
    if let descriptor = resting.first(where: { $0.value == route })?.key { endRest(descriptor) }
  }

  private func endRest(_ descriptor: Int32) {
    resting[descriptor] = nil
    polls[descriptor]?.watch([])
    asked.insert(descriptor)
  }

  private func look() {
    guard !resting.isEmpty else { return }
    var ends = resting.keys.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    guard poll(&ends, nfds_t(ends.count), 0) > 0 else { return }
    for end in ends where end.revents != 0 { listen(end.fd) }
  }

  private func listen(_ descriptor: Int32) {
    var byte: UInt8 = 0
    switch recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) {
    case 1: shut(descriptor)
    case -1 where errno == EAGAIN: polls[descriptor]?.watch(.readable)
    // The server has closed the connection. libcurl notices this by itself.
    default:
      resting[descriptor] = nil
      polls[descriptor]?.watch([])
    }
  }

  /// Also reads the waiting bytes, all of them: while there are any, libcurl takes a TLS connection for alive, and it would
  /// take the last ones for those that follow what it has. Nothing can arrive any more.
  private func shut(_ descriptor: Int32) {
    resting[descriptor] = nil
    polls[descriptor]?.watch([])
    shutdown(descriptor, Int32(SHUT_RDWR))
    withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { buffer in
      while recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
    }
  }

  /// Ends a connection's socket: first the watcher, then the descriptor.
  func close(_ descriptor: Int32) {
    polls.removeValue(forKey: descriptor)?.close()
    owned.remove(descriptor)
    used.remove(descriptor)
    resting[descriptor] = nil
    asked.remove(descriptor)
    Glibc.close(descriptor)
  }

  /// Stops watching all remaining sockets.
  func closeAll() {
    for poll in polls.values { poll.close() }
    polls.removeAll()
  }
}
