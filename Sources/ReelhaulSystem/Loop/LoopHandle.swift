import CReelhaulUV

/// The memory of one libuv handle. It lives from ``open(context:)`` until libuv's close callback, even if its owner
/// goes earlier.
///
/// `Raw` is the C struct (`uv_timer_t`, `uv_poll_t` …). This class uses the struct's `data` field; the owner stores
/// its own data in ``context``.
// @unchecked: only the loop's thread touches a libuv handle.
final class LoopHandle<Raw>: @unchecked Sendable {
  let pointer: UnsafeMutablePointer<Raw>
  private(set) var context: AnyObject?
  private var isOpen = false

  init() {
    pointer = .allocate(capacity: 1)
  }

  deinit {
    pointer.deallocate()
  }

  /// The pointer for `uv_*_init`, which must succeed. Retains `self` and `context` until the handle is closed.
  func open(context: AnyObject? = nil) -> UnsafeMutablePointer<Raw> {
    precondition(!isOpen)
    isOpen = true
    self.context = context
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    return pointer
  }

  /// Closes the handle; later calls do nothing. The memory is freed after libuv's callback.
  func close() {
    guard isOpen else { return }
    isOpen = false
    context = nil
    uv_close(handle) { handle in
      Unmanaged<AnyObject>.fromOpaque(handle!.pointee.data).release()
    }
  }

  /// The context as `Owner`, the type it was opened with; nil once closed.
  func owner<Owner: AnyObject>(as _: Owner.Type) -> Owner? {
    context as? Owner
  }

  /// The object that owns the handle of a C callback.
  static func from(_ pointer: UnsafeMutablePointer<Raw>?) -> LoopHandle<Raw> {
    let handle = UnsafeMutableRawPointer(pointer!).assumingMemoryBound(to: uv_handle_t.self)
    return Unmanaged<LoopHandle<Raw>>.fromOpaque(handle.pointee.data).takeUnretainedValue()
  }

  private var handle: UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_handle_t.self)
  }
}
