import CReelhaulUV
import Glibc

/// An accepted TCP connection on an ``EventLoop``.
// @unchecked: touched only on the loop's thread, which every call checks.
package final class LoopStream: @unchecked Sendable {
  package enum Input {
    /// The bytes are valid only during the call.
    case bytes(UnsafeRawBufferPointer)
    /// The peer sends nothing more, or the connection is broken. Nothing follows.
    case end
  }

  private let loop: EventLoop
  private let handle = LoopHandle<uv_tcp_t>()
  private var receive: ((Input) -> Void)?
  private var isReading = false
  package private(set) var isClosed = false

  private let buffer: LoopBuffer
  private let backlog: LoopBacklog

  init(loop: EventLoop, buffer: LoopBuffer, backlog: LoopBacklog) {
    self.loop = loop
    self.buffer = buffer
    self.backlog = backlog
    uv_tcp_init(loop.raw, handle.open(context: self))
  }

  /// Becomes the owner of an accepted socket. Returns false if that cannot be.
  func take(_ socket: Int32) -> Bool {
    guard uv_tcp_open(handle.pointer, socket) == 0 else {
      Glibc.close(socket)
      return false
    }
    uv_tcp_nodelay(handle.pointer, 1)
    return true
  }

  /// The address of the peer, without its port; empty if the connection is broken.
  package var peer: String { SocketName(handle.descriptor, getpeername)?.host ?? "" }

  /// How many bytes wait to be sent.
  package var pending: Int { isClosed ? 0 : uv_stream_get_write_queue_size(handle.stream) }

  /// Bounds the kernel's buffer, which otherwise hides for megabytes that the peer reads nothing.
  package func boundSendBuffer(_ bytes: Int32) {
    var value = bytes
    let raw = UnsafeMutableRawPointer(handle.pointer).assumingMemoryBound(to: uv_handle_t.self)
    uv_send_buffer_size(raw, &value)
  }

  /// Calls `receive` with all input until ``close()``.
  package func start(_ receive: @escaping (Input) -> Void) {
    loop.checkIsolated()
    self.receive = receive
    setReading(true)
  }

  /// Starts or stops reading. What arrives meanwhile waits in the kernel, and so does the end.
  package func setReading(_ reads: Bool) {
    guard !isClosed, reads != isReading else { return }
    isReading = reads
    guard reads else {
      uv_read_stop(handle.stream)
      return
    }
    uv_read_start(handle.stream, Self.allocate, Self.read)
  }

  private static let allocate: uv_alloc_cb = { handle, _, buffer in
    let handle = UnsafeMutableRawPointer(handle!).assumingMemoryBound(to: uv_tcp_t.self)
    guard let stream = LoopHandle.from(handle).owner(as: LoopStream.self) else { return }
    buffer!.pointee = stream.buffer.uv
  }

  private static let read: uv_read_cb = { stream, count, buffer in
    let handle = UnsafeMutableRawPointer(stream!).assumingMemoryBound(to: uv_tcp_t.self)
    guard count != 0, let stream = LoopHandle.from(handle).owner(as: LoopStream.self) else { return }
    if count > 0 {
      stream.receive?(.bytes(UnsafeRawBufferPointer(start: buffer!.pointee.base, count: count)))
    } else {
      uv_read_stop(stream.handle.stream)
      stream.isReading = false
      stream.receive?(.end)
    }
  }

  /// Sends the bytes after those of earlier calls. `sent` is called once they are all sent, or the connection is broken.
  package func write(_ bytes: [UInt8], sent: (() -> Void)? = nil) {
    loop.checkIsolated()
    guard !isClosed, !bytes.isEmpty else { return sent?() ?? () }
    var offset = 0
    if pending == 0 {
      let count = bytes.withUnsafeBytes { raw in
        var buffer = uv_buf_t(
          base: UnsafeMutablePointer(mutating: raw.bindMemory(to: CChar.self).baseAddress), len: raw.count)
        return uv_try_write(handle.stream, &buffer, 1)
      }
      offset = max(0, Int(count))
    }
    guard offset < bytes.count else { return sent?() ?? () }
    let write = LoopWrite(bytes[offset...], in: backlog) { [weak self] code in
      sent?()
      // Not within the caller's own call.
      if code < 0, let self { loop.execute { [self] in broken() } }
    }
    write.start(on: handle.stream)
  }

  /// A write has failed. Nobody may be reading, who would notice.
  private func broken() {
    guard !isClosed else { return }
    setReading(false)
    receive?(.end)
  }

  /// Tells the peer that nothing more follows, after all that was written.
  package func shutdown() {
    guard !isClosed else { return }
    let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
    let code = uv_shutdown(request, handle.stream) { request, _ in request?.deallocate() }
    if code != 0 { request.deallocate() }
  }

  package func close() {
    loop.checkIsolated()
    guard !isClosed else { return }
    isClosed = true
    receive = nil
    handle.close()
  }
}

extension LoopHandle where Raw == uv_tcp_t {
  /// -1 if there is no socket any more.
  var descriptor: Int32 {
    var descriptor: uv_os_fd_t = -1
    uv_fileno(UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_handle_t.self), &descriptor)
    return descriptor
  }

  var stream: UnsafeMutablePointer<uv_stream_t> {
    UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_stream_t.self)
  }
}

/// Bytes on their way, which live until libuv has sent them.
private final class LoopWrite {
  private let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
  private let bytes: UnsafeMutableBufferPointer<CChar>
  private let backlog: LoopBacklog
  private let sent: (CInt) -> Void

  init(_ bytes: ArraySlice<UInt8>, in backlog: LoopBacklog, sent: @escaping (CInt) -> Void) {
    self.bytes = .allocate(capacity: bytes.count)
    self.backlog = backlog
    self.sent = sent
    backlog.bytes += bytes.count
    _ = UnsafeMutableRawBufferPointer(self.bytes).initializeMemory(as: UInt8.self, from: bytes)
  }

  deinit {
    request.deallocate()
    bytes.deallocate()
    backlog.bytes -= bytes.count
  }

  func start(on stream: UnsafeMutablePointer<uv_stream_t>) {
    request.pointee.data = Unmanaged.passRetained(self).toOpaque()
    var buffer = uv_buf_t(base: bytes.baseAddress, len: bytes.count)
    let code = uv_write(request, stream, &buffer, 1) { LoopWrite.finished($0!, $1) }
    if code != 0 { LoopWrite.finished(request, code) }
  }

  private static func finished(_ request: UnsafeMutablePointer<uv_write_t>, _ code: CInt) {
    let write = Unmanaged<LoopWrite>.fromOpaque(request.pointee.data).takeRetainedValue()
    write.sent(code)
  }
}

/// Memory for the reads of all connections of a listener: one read is used up before the next.
final class LoopBuffer {
  let uv: uv_buf_t

  init(capacity: Int) {
    uv = uv_buf_t(base: .allocate(capacity: capacity), len: capacity)
  }

  deinit {
    uv.base.deallocate()
  }
}

/// How many bytes on their way the connections of a listener hold. A piece counts as a whole until all of it is sent.
final class LoopBacklog {
  var bytes = 0
}
